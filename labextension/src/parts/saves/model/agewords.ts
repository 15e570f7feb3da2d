/** The age of a save, in words. */
import type { TranslationBundle } from '@jupyterlab/translation';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** "just now", "5 minutes ago", "3 hours ago", "2 days ago". */
export function ageWord(trans: TranslationBundle, seconds: number): string {
  const ages = (unit: number): number => Math.floor(seconds / unit);
  if (seconds < MINUTE) {
    return trans.__('just now');
  }
  if (seconds < HOUR) {
    return trans._n('%1 minute ago', '%1 minutes ago', ages(MINUTE));
  }
  return seconds < 2 * DAY
    ? trans._n('%1 hour ago', '%1 hours ago', ages(HOUR))
    : trans._n('%1 day ago', '%1 days ago', ages(DAY));
}
