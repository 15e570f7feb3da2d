/** Formats sizes, durations and percentages, the same everywhere in the interface. Pure. */

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];
const STEP = 1024;

/** "412 MB", "1.24 GB": three digits, so that columns align. */
export function formatBytes(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined || !Number.isFinite(bytes)) {
    return '-';
  }
  let value = Math.max(0, bytes);
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= STEP;
    unit += 1;
  }
  return `${unit === 0 ? value.toFixed(0) : threeFigures(value)} ${UNITS[unit]}`;
}

/** "6 ms", "0.4 s", "12 s", "3:05", "1:02:07". */
export function formatSeconds(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) {
    return '-';
  }
  const value = Math.max(0, seconds);
  if (value > 0 && value < 0.0995) {
    return `${Math.ceil(value * 1000)} ms`;
  }
  if (value < 9.95) {
    return `${value.toFixed(1)} s`;
  }
  if (value < 59.5) {
    return `${value.toFixed(0)} s`;
  }
  const whole = Math.round(value);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = String(whole % 60).padStart(2, '0');
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${rest}` : `${minutes}:${rest}`;
}

/** The time of a step: "4.2 ms", "480 ms", "1.3 s". */
export function formatStepTime(seconds: number): string {
  if (seconds >= 0.9995) {
    return formatSeconds(seconds);
  }
  return `${(1000 * seconds).toFixed(seconds >= 0.00995 ? 0 : 1)} ms`;
}

/** "37 %" or "-". */
export function formatPercent(percent: number | null | undefined): string {
  return percent === null || percent === undefined ? '-' : `${Math.round(percent)} %`;
}

/** A fraction between 0 and 1; 0 if either value is unknown. */
export function fraction(part: number | null | undefined, whole: number | null | undefined): number {
  if (!part || !whole || whole <= 0) {
    return 0;
  }
  return Math.min(1, Math.max(0, part / whole));
}

function threeFigures(value: number): string {
  return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

/** "14:02" of today, with the date of another day; as the language of the page writes it. */
export function clockTime(at: number, now: number): string {
  const [then, today] = [new Date(at * 1000), new Date(now * 1000)];
  const time = { hour: '2-digit', minute: '2-digit' } as const;
  return then.toDateString() === today.toDateString()
    ? then.toLocaleTimeString(undefined, time)
    : then.toLocaleString(undefined, { ...time, day: 'numeric', month: 'short', year: 'numeric' });
}
