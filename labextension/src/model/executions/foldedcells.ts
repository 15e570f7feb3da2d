import { SessionIds, sessionOf } from './sessionids';

/** In which cells the user has folded away why they are slow. Kept in the tab's session storage, which survives a reload. */
const KEY = 'jupyter-dist:folded-slowness';
const MAX_KEPT = 200;

export class FoldedCells extends SessionIds {
  constructor(storage = sessionOf(window)) {
    super(KEY, MAX_KEPT, storage);
  }

  set(cell: string, isFolded: boolean): void {
    this.delete(cell); // so that it is the newest again
    if (isFolded) {
      this.add(cell);
    }
  }
}
