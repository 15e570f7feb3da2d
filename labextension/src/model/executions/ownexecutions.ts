/**
 * Which executions were submitted from this tab of the browser, so that their
 * output is trusted. Kept in the tab's session storage, which survives a
 * reload and which no other user of the server can write.
 */
const KEY = 'jupyter-dist:executions';
/** Older ones are forgotten: their output is sanitized then. */
const MAX_KEPT = 500;

export class OwnExecutions {
  constructor(private readonly _storage: Storage | null = sessionOf(window)) {
    this._ids = new Set(read(this._storage));
  }

  has(id: string): boolean {
    return this._ids.has(id);
  }

  add(id: string): void {
    this._ids.add(id);
    try {
      this._storage?.setItem(KEY, JSON.stringify([...this._ids].slice(-MAX_KEPT)));
    } catch {
      // The storage is full: known until the page is reloaded.
    }
  }

  private readonly _ids: Set<string>;
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
