// Times arrive in UTC and are shown in the reader's zone.

// The page's language in the reader's own kind of it: British readers get no American dates.
const spoken = document.documentElement.lang;
const own = navigator.languages.find((name) => name.split("-")[0] === spoken.split("-")[0]) ?? spoken;
const whole = new Intl.DateTimeFormat(own, { dateStyle: "medium", timeStyle: "medium" });
const thisYear = new Intl.DateTimeFormat(own, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });
const year = new Date().getFullYear();

export function showTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (!Number.isNaN(at.valueOf())) {
      element.textContent = (at.getFullYear() === year ? thisYear : whole).format(at);
      element.title = element.dateTime;
    }
  }
}
