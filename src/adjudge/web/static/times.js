// Times arrive in UTC and are shown in the reader's zone.

const shown = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "medium" });

export function showTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (!Number.isNaN(at.valueOf())) {
      element.textContent = shown.format(at);
      element.title = element.dateTime;
    }
  }
}
