// Lists the chosen files with their sizes, accepts dropped files, and shows the entry point only where a language has one.

const ARCHIVE = /\.(zip|tar|tar\.gz|tgz)$/i;

export function start() {
  for (const form of document.querySelectorAll("[data-files]")) {
    attachFiles(form);
    attachEntryPoint(form);
  }
}

function attachFiles(form) {
  const input = form.querySelector("input[type=file]");
  const list = form.querySelector("[data-chosen]");
  const show = () => list.replaceChildren(...[...input.files].map(listed));
  input.addEventListener("change", show);
  addEventListener("pageshow", show);  // a browser may restore the choice

  form.addEventListener("dragover", (event) => { event.preventDefault(); form.dataset.over = ""; });
  form.addEventListener("dragleave", () => { delete form.dataset.over; });
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    delete form.dataset.over;
    const { files } = event.dataTransfer;
    if (!files.length) return;
    if ("draft" in form.dataset && files.length === 1 && !ARCHIVE.test(files[0].name)) {
      form.dispatchEvent(new CustomEvent("adjudge:file", { detail: files[0] }));
      return;
    }
    input.files = files;
    show();
  });
}

function attachEntryPoint(form) {
  const field = form.querySelector("[data-entry-point-field]");
  const language = form.querySelector("select[name=language]");
  if (!field || !language) return;
  const show = () => {
    field.hidden = (language.selectedOptions[0]?.dataset.entryPoint ?? "none") === "none";
    if (field.hidden) field.querySelector("input").value = "";
  };
  language.addEventListener("change", show);
  show();
}

function listed(file) {
  const item = document.createElement("li");
  const size = document.createElement("span");
  size.className = "muted";
  size.textContent = formatSize(file.size);
  item.append(file.name, " ", size);
  return item;
}

function formatSize(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
}
