/**
 * Notices that something else than this page runs cells on ranks: another page may have the same notebook open. With
 * real-time collaboration, pages inform each other (cells/output/authors.ts).
 */
import type { IDistGroups } from '../../tokens';

/** By then this page has the answers to its own requests. */
const PATIENCE_MS = 500;

export interface IOtherPagesOptions {
  groups: Pick<IDistGroups, 'changed' | 'groups'>;
  /** Whether this page has that execution. */
  isKnown(execution: string): boolean;
  /** Look what the server has for the open notebooks. */
  look(): void;
}

export class OtherPages {
  constructor(private readonly _options: IOtherPagesOptions) {
    this._listed = new Set(this._list());
    _options.groups.changed.connect(this._onGroups, this);
  }

  private _onGroups(): void {
    const listed = this._list();
    listed.filter(id => !this._listed.has(id)).forEach(id => this._news.add(id));
    this._listed = new Set(listed);
    if (this._news.size > 0 && this._timer === undefined) {
      this._timer = setTimeout(() => this._onTime(), PATIENCE_MS);
    }
  }

  private _onTime(): void {
    this._timer = undefined;
    const news = [...this._news];
    this._news.clear();
    if (news.some(id => !this._options.isKnown(id))) {
      this._options.look();
    }
  }

  private _list(): string[] {
    return this._options.groups.groups.flatMap(({ running, queued }) => [...running, ...queued]);
  }

  /** The executions that run or wait. */
  private _listed: ReadonlySet<string>;
  /** Executions that came since the page looked. */
  private readonly _news = new Set<string>();
  private _timer: ReturnType<typeof setTimeout> | undefined;
}
