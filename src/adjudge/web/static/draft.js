// Stores the draft of a solution in this browser, per problem and language, and opens a dropped file in the editor.

export function start() {
  for (const form of document.querySelectorAll("[data-draft]")) attachDraft(form);
}

function attachDraft(form) {
  const text = form.querySelector("textarea");
  const language = form.querySelector("select[name=language]");
  const key = () => `adjudge-draft:${form.dataset.draft}:${language.value}`;

  const put = (value) => {
    text.value = value;
    text.dispatchEvent(new CustomEvent("adjudge:set", { detail: value }));
  };
  const load = () => put(stored(key()) ?? form.querySelector(`template[data-language="${language.value}"]`)?.content.textContent ?? "");
  const save = () => {
    try { localStorage.setItem(key(), text.value); } catch { /* storage full or disabled: the draft is not stored */ }
  };

  text.addEventListener("input", save);
  language.addEventListener("change", load);
  if (!text.value) load();

  // In the capture phase, before the editor inserts a line.
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation();
    form.requestSubmit();
  }, true);

  // files.js passes on a single dropped file.
  form.addEventListener("adjudge:file", async (event) => {
    const file = event.detail;
    const extension = file.name.split(".").pop();
    const match = [...language.options].find((option) => !option.disabled && option.dataset.extensions?.split(" ").includes(extension));
    if (match) language.value = match.value;
    put(await file.text());
    save();
  });
}

function stored(key) {
  try { return localStorage.getItem(key); } catch { return null; }
}
