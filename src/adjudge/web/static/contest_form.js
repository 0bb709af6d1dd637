// Forms with times: fills in the time zone of the browser and converts the times, which the server renders in UTC.

export function start() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const form of document.querySelectorAll("form[data-time-zone='local']")) {
    const select = form.elements.zone;
    if (!select || ![...select.options].some((option) => option.value === zone)) continue;
    select.value = zone;
    for (const input of form.querySelectorAll("input[type='datetime-local']")) if (input.value) input.value = local(new Date(`${input.value}Z`));
  }
}

function local(at) {
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
