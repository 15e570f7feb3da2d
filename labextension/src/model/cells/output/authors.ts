/**
 * Decides which page writes an output. With real-time collaboration, several
 * pages share a notebook, and each would write the whole output of a cell
 * twice a second. Only one does: the page that submitted the cell, or, if that
 * is closed, the first of the remaining ones. They agree through the
 * document's awareness, where each page lists its executions; the list
 * disappears with the page.
 */
import type { INotebookModel } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import { ChangingModel } from '../../changing';

/** Our field in a page's awareness: the cells it has submitted, by execution id. */
const FIELD = 'jupyter_dist';

/** The same for executions that have ended, whose widgets may still print. */
const LATE_FIELD = 'jupyter_dist_late';

/** By then a page that opens a shared notebook has received the other pages' states, which come after the document. */
export const SETTLE_MS = 2000;

type IAwareness = INotebookModel['sharedModel']['awareness'];
type Claims = Record<string, string>;

/** The pages that share a notebook; without collaboration, only this one. */
export class Authors extends ChangingModel implements IDisposable {
  constructor(
    { awareness }: { awareness: IAwareness },
    /** Whether other pages can have the notebook. */
    readonly isShared = false
  ) {
    super();
    this._awareness = awareness;
    this.settled = isShared ? new Promise(resolve => setTimeout(resolve, SETTLE_MS)) : Promise.resolve();
    this._tell();
    awareness.on('change', this._onChange);
  }

  /** Resolves when the page knows whether it is alone; before, it writes only the output of cells it has submitted itself. */
  readonly settled: Promise<void>;

  dispose(): void {
    if (!this.isDisposed) {
      this._awareness.off('change', this._onChange);
      this._awareness.setLocalStateField(FIELD, null);
      this._awareness.setLocalStateField(LATE_FIELD, null);
      super.dispose();
    }
  }

  /** Note that this page submitted a cell. */
  claim(execution: string, cell: string): void {
    this._own = { ...this._own, [execution]: cell };
    this._tell();
  }

  /** Note that it has ended, and that the notebook has all of its output. */
  release(execution: string): void {
    const { [execution]: cell, ...others } = this._own;
    if (cell !== undefined) {
      this._own = others;
      this._released.add(execution);
      this._tell();
    }
  }

  /** Note that this page follows what the widgets of an execution print after its end; it writes that if it wrote the end. */
  keep(execution: string): void {
    if (this._released.has(execution) && !this._late.includes(execution)) {
      this._late = [...this._late, execution];
      this._tellLate();
    }
  }

  /** Note that it does not follow that any more. */
  drop(execution: string): void {
    if (this._late.includes(execution)) {
      this._late = this._late.filter(other => other !== execution);
      this._tellLate();
    }
  }

  /** Whether this page writes the output of that execution. */
  isAuthor(execution: string): boolean {
    if (this._written.has(execution) && !(execution in this._own)) {
      return false;
    }
    return this._isFirst(this._pages().filter(([, claims]) => execution in claims));
  }

  /** Whether this page writes what the widgets of that execution print after its end. */
  isLateAuthor(execution: string): boolean {
    const states = this._awareness.getStates();
    const keeps = (late: unknown): boolean => Array.isArray(late) && late.includes(execution);
    return this._isFirst(this._pages().filter(([page]) => keeps(states.get(page)?.[LATE_FIELD])));
  }

  /** The cells that other pages have submitted, by execution id. */
  get others(): Claims {
    const others = this._pages().filter(([page]) => page !== this._awareness.clientID);
    return Object.assign({}, ...others.map(([, claims]) => claims));
  }

  /** The pages that have this extension, in an order that is the same for all. */
  private _pages(): [number, Claims][] {
    return [...this._awareness.getStates()]
      .map(([page, state]): [number, Claims] => [page, state[FIELD]])
      .filter(([, claims]) => claims !== null && typeof claims === 'object')
      .sort(([a], [b]) => a - b);
  }

  /** Whether this page is the first of the pages with claims, or of all pages if none has a claim. */
  private _isFirst(claimed: readonly [number, Claims][]): boolean {
    const [first] = claimed.length > 0 ? claimed : this._pages();
    return first === undefined || first[0] === this._awareness.clientID;
  }

  private _tellLate(): void {
    if (!this.isDisposed) {
      this._awareness.setLocalStateField(LATE_FIELD, this._late);
    }
  }

  private _tell(): void {
    this._awareness.setLocalStateField(FIELD, this._own);
  }

  private _onChange = (): void => {
    this._noteWritten();
    this.emitChanged();
  };

  /** A page that is open and no longer lists an execution has written its end, which this page may get later. */
  private _noteWritten(): void {
    const claims = new Map(this._pages().filter(([page]) => page !== this._awareness.clientID));
    for (const [page, before] of this._claims) {
      const now = claims.get(page);
      Object.keys(before)
        .filter(execution => now && !(execution in now))
        .forEach(execution => this._written.add(execution));
    }
    this._claims = claims;
  }

  private readonly _awareness: IAwareness;
  /** What other pages listed last. */
  private _claims = new Map<number, Claims>();
  /** Executions whose end this page has written, and whose widgets it follows. */
  private _late: readonly string[] = [];
  private _own: Claims = {};
  /** Executions whose end this page has written. */
  private readonly _released = new Set<string>();
  /** Executions whose end another page has written. */
  private readonly _written = new Set<string>();
}
