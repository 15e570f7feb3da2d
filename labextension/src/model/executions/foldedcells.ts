import { SessionIds, sessionOf } from './sessionids';

const MAX_KEPT = 200;

/** In which cells the user has folded a note away. Kept in the tab's session storage, which survives a reload. */
export class FoldedCells extends SessionIds {
  constructor(key: string, storage = sessionOf(window)) {
    super(`jupyter-dist:${key}`, MAX_KEPT, storage);
  }

  set(cell: string, isFolded: boolean): void {
    this.delete(cell); // so that it is the newest again
    if (isFolded) {
      this.add(cell);
    }
  }
}
