/** The words for a parked group: where its tensors are, and what stays where it was. */
import { formatBytes } from '../../model/format/quantities';
import type { IGroupNews } from '../../model/format/states';

export const parkedNews: IGroupNews = {
  stateWords: ({ state, parked }, trans) => {
    if (state !== 'parked' || !parked) {
      return null;
    }
    const bytes = formatBytes(parked.held_bytes);
    return parked.place === 'host'
      ? trans.__('parked, %1 in host memory', bytes)
      : trans.__('parked, %1 in files', bytes);
  },
  lines: ({ state, parked }) => (state === 'parked' ? (parked?.left ?? []) : []),
  returnsSince: ({ parked }) => parked?.resuming_since ?? null
};
