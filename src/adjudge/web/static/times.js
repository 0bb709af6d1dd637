// Shows timestamps, which the server renders in UTC, in the local time zone.

// The regional variant of the page's language that the browser prefers, for example en-GB.
const language = document.documentElement.lang;
const locale = navigator.languages.find((name) => name.split("-")[0] === language.split("-")[0]) ?? language;
const withYear = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });
const thisYear = new Intl.DateTimeFormat(locale, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });
const year = new Date().getFullYear();

export function formatTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (!Number.isNaN(at.valueOf())) {
      element.textContent = (at.getFullYear() === year ? thisYear : withYear).format(at);
      element.title = element.dateTime;
    }
  }
}
