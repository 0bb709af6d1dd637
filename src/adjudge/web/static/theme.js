// Runs before the first paint, so that the page does not flash in the other theme.
"use strict";
try {
  const chosen = localStorage.getItem("adjudge-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch { /* storage disabled: use the theme of the system */ }
