// Runs before the first paint, so that a page in the chosen theme never flashes in the other one.
"use strict";
try {
  const chosen = localStorage.getItem("adjudge-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch { /* storage may be forbidden: the system's theme it is */ }
