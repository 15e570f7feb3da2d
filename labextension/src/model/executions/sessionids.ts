/** Identifiers in the tab's session storage, which survives a reload; of many, the newest are kept. */
export class SessionIds {
  constructor(
    private readonly _key: string,
    private readonly _maxKept: number,
    private readonly _storage: Storage | null
  ) {
    this._ids = new Set(read(_storage, _key));
  }

  has(id: string): boolean {
    return this._ids.has(id);
  }

  add(id: string): void {
    this._ids.add(id);
    this._store();
  }

  delete(id: string): void {
    this._ids.delete(id);
    this._store();
  }

  private _store(): void {
    try {
      this._storage?.setItem(this._key, JSON.stringify([...this._ids].slice(-this._maxKept)));
    } catch {
      // The storage is full: known until the page is reloaded.
    }
  }

  private readonly _ids: Set<string>;
}

export function sessionOf(page: Window): Storage | null {
  try {
    return page.sessionStorage;
  } catch {
    return null; // the browser's settings forbid it
  }
}

function read(storage: Storage | null, key: string): string[] {
  try {
    const found: unknown = JSON.parse(storage?.getItem(key) ?? '[]');
    return Array.isArray(found) ? found.filter((id): id is string => typeof id === 'string') : [];
  } catch {
    return [];
  }
}
