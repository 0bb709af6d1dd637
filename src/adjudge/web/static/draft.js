// Remembers what was typed into a solution, per problem and language, in this browser only; takes dropped files too.

export function start() {
  for (const form of document.querySelectorAll("[data-draft]")) remember(form);
}

function remember(form) {
  const text = form.querySelector("textarea");
  const language = form.querySelector("select[name=language]");
  const key = () => `adjudge-draft:${form.dataset.draft}:${language.value}`;

  const put = (value) => {
    text.value = value;
    text.dispatchEvent(new CustomEvent("adjudge:set", { detail: value }));
  };
  const load = () => put(stored(key()) ?? form.querySelector(`template[data-language="${language.value}"]`)?.content.textContent ?? "");
  const save = () => {
    try { localStorage.setItem(key(), text.value); } catch { /* full or forbidden: the draft lives in this page only */ }
  };

  text.addEventListener("input", save);
  language.addEventListener("change", load);
  if (!text.value) load();

  // Before the editor sees it: there the keys would insert a line.
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation();
    form.requestSubmit();
  }, true);

  form.addEventListener("dragover", (event) => { event.preventDefault(); form.dataset.over = ""; });
  form.addEventListener("dragleave", () => { delete form.dataset.over; });
  form.addEventListener("drop", async (event) => {
    event.preventDefault();
    delete form.dataset.over;
    const [file] = event.dataTransfer.files;
    if (!file) return;
    const ending = file.name.split(".").pop();
    const fits = [...language.options].find((option) => !option.disabled && option.dataset.extensions?.split(" ").includes(ending));
    if (fits) language.value = fits.value;
    put(await file.text());
    save();
  });
}

function stored(key) {
  try { return localStorage.getItem(key); } catch { return null; }
}
