/** In which cells the user has folded away why they are slow. Kept in the tab's session storage, which survives a reload. */
const KEY = 'jupyter-dist:folded-slowness';
const MAX_KEPT = 200;

export class FoldedCells {
  constructor(private readonly _storage: Storage | null = sessionOf(window)) {
    this._cells = new Set(read(this._storage));
  }

  has(cell: string): boolean {
    return this._cells.has(cell);
  }

  set(cell: string, isFolded: boolean): void {
    this._cells.delete(cell);
    if (isFolded) {
      this._cells.add(cell);
    }
    try {
      this._storage?.setItem(KEY, JSON.stringify([...this._cells].slice(-MAX_KEPT)));
    } catch {
      // The storage is full: known until the page is reloaded.
    }
  }

  private readonly _cells: Set<string>;
}

function sessionOf(page: Window): Storage | null {
  try {
    return page.sessionStorage;
  } catch {
    return null; // the browser's settings forbid it
  }
}

function read(storage: Storage | null): string[] {
  try {
    const found: unknown = JSON.parse(storage?.getItem(KEY) ?? '[]');
    return Array.isArray(found) ? found.filter((id): id is string => typeof id === 'string') : [];
  } catch {
    return [];
  }
}
