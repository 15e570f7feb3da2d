/**
 * Equal widgets of ranks, shown as one shared widget (decision 26). The shared widget exists in the page only: it follows
 * the first rank's widget, and a change in it is sent to each rank.
 */
import type { IDisposable } from '@lumino/disposable';
import type { ICommNews } from '../../../services/protocol';
import { IWidgetTree, renamed, WidgetStates } from './states';

/** Ranks that do the same do it within this time, or they are shown apart. */
export const SETTLE_MS = 1000;
/** As long after they were shown first: the page may still load what draws the widgets of the first rank. */
export const FIRST_SETTLE_MS = 30_000;
/** How often what has changed is compared. */
const LOOK_MS = 200;

const PREFIX = 'all-ranks-';

/** Whether a widget is shared: it stands for the widgets of several ranks. */
export function isShared(id: string): boolean {
  return id.startsWith(PREFIX);
}

/** A widget of a rank that is sent what is changed in the shared one. */
export interface IRankWidget {
  rank: number;
  comm_id: string;
  /** Puts the names of that rank's widgets into what is sent. */
  rename<T>(data: T): T;
}

/** The page's side of the shared widgets. */
export interface ISharedKernel {
  open(comms: readonly ICommNews[]): Promise<void>;
  say(news: ICommNews): Promise<void>;
  close(news: ICommNews): Promise<void>;
  /** Whether messages of this page wait for a rank. */
  waitsFor(rank: number): boolean;
}

/** Widgets of a cell, one of each rank, in its order. */
interface ISet {
  roots: ReadonlyMap<number, string>;
  /** `new`: not compared, or not equal yet. `apart`: until the page is loaded again, so that nothing folds under a hand. */
  state: 'new' | 'shared' | 'apart';
  /** When they were equal last: of each rank, all ids. */
  ids: Map<number, string[]>;
  /** Since when they are not equal. */
  since: number | null;
}

export class SharedWidgets implements IDisposable {
  constructor(
    private readonly _states: WidgetStates,
    private readonly _kernel: ISharedKernel,
    private readonly _onChanged: () => void
  ) {}

  isDisposed = false;

  /** Resolves when the widgets that `find` has returned are made. */
  get ready(): Promise<void> {
    return this._chain;
  }

  dispose(): void {
    this.isDisposed = true;
    clearTimeout(this._timer);
    this._sets.clear();
  }

  /** The id of the widget that stands for these, which are given by rank; null while they are not known to be equal. */
  find(roots: ReadonlyMap<number, string>): string | null {
    const key = [...roots.values()].join();
    let set = this._sets.get(key);
    if (!set) {
      set = { roots, state: 'new', ids: new Map(), since: null };
      this._sets.set(key, set);
      this._look(set);
    }
    return set.state === 'shared' ? PREFIX + firstOf(set.roots) : null;
  }

  /** The widgets of ranks that a shared one stands for. */
  placesOf(shared: string): IRankWidget[] {
    const id = shared.slice(PREFIX.length);
    const set = [...this._sets.values()].find(each => each.state === 'shared' && this._idsOf(each).includes(id));
    const first = set ? firstOf(set.ids) : [];
    const at = first.indexOf(id);
    return [...(at < 0 ? [] : set!.ids)].map(([rank, ids]) => ({
      rank,
      comm_id: ids[at],
      rename: data => renamed(data, name => ids[first.indexOf(name.slice(PREFIX.length))] ?? name)
    }));
  }

  /** A widget of one rank was used alone, in this page. */
  used(id: string): void {
    this._used.add(id);
    this._part(set => [...set.ids.values()].some(ids => ids.includes(id)));
  }

  died(rank: number): void {
    this._part(set => set.roots.has(rank));
  }

  /** The states have taken a message of a rank. */
  async follow(news: ICommNews): Promise<void> {
    this.lookSoon();
    const shared = PREFIX + news.comm_id;
    if (!this._opened.has(shared)) {
      return;
    }
    if (news.kind === 'comm_close') {
      this._opened.delete(shared);
      return this._then(() => this._kernel.close({ ...news, comm_id: shared }));
    }
    for (const set of this._sets.values()) {
      if (set.state === 'shared') {
        this._open(set); // it may have new parts
      }
    }
    return this._then(() => this._kernel.say({ ...news, comm_id: shared, data: renamed(news.data, sharedName) }));
  }

  // -- deciding -----------------------------------------------------------------------------------------

  /** The states have changed. */
  lookSoon(): void {
    if (this._timer === undefined && [...this._sets.values()].some(set => set.state !== 'apart')) {
      this._timer = setTimeout(() => {
        this._timer = undefined;
        const before = this._sharedKeys();
        this._sets.forEach(set => this._look(set));
        if (this._sharedKeys() !== before) {
          this._onChanged();
        }
      }, LOOK_MS);
    }
  }

  private _look(set: ISet): void {
    if (set.state === 'new' && Date.now() - (set.since ?? Infinity) >= FIRST_SETTLE_MS) {
      set.state = 'apart';
    }
    if (set.state === 'apart') {
      return;
    }
    const trees = [...set.roots].map(([rank, root]) => [rank, this._states.treeOf(root)] as const);
    if (
      areEqual(trees.map(([, tree]) => tree)) &&
      !trees.some(([, tree]) => tree!.ids.some(id => this._used.has(id)))
    ) {
      set.since = null;
      set.ids = new Map(trees.map(([rank, tree]) => [rank, tree!.ids]));
      set.state = 'shared';
      this._open(set);
      return;
    }
    if ([...set.roots.keys()].some(rank => this._kernel.waitsFor(rank))) {
      set.since = null; // the ranks get the change one after the other
    } else {
      set.since ??= Date.now();
    }
    if (set.state === 'new') {
      return; // they become equal by a message only
    }
    if (set.since !== null && Date.now() - set.since >= SETTLE_MS) {
      set.state = 'apart';
    } else {
      this.lookSoon();
    }
  }

  private _part(isMeant: (set: ISet) => boolean): void {
    const meant = [...this._sets.values()].filter(set => set.state === 'shared' && isMeant(set));
    meant.forEach(set => (set.state = 'apart'));
    if (meant.length > 0) {
      this._onChanged();
    }
  }

  private _sharedKeys(): string {
    return [...this._sets].flatMap(([key, { state }]) => (state === 'shared' ? [key] : [])).join(';');
  }

  // -- the widgets that stand for others ------------------------------------------------------------------

  /** The ids of the first rank's widgets now. */
  private _idsOf(set: ISet): string[] {
    return this._states.treeOf(firstOf(set.roots))?.ids ?? firstOf(set.ids);
  }

  /** Open the shared widgets that are missing. */
  private _open(set: ISet): void {
    const missing = this._idsOf(set).filter(id => !this._opened.has(PREFIX + id));
    if (missing.length === 0) {
      return;
    }
    missing.forEach(id => this._opened.add(PREFIX + id));
    const opened = missing.map(id => this._opening(id));
    void this._then(() => this._kernel.open(opened));
  }

  private _opening(id: string): ICommNews {
    const state = renamed(this._states.stateOf(id), sharedName);
    return {
      seq: 0,
      kind: 'comm_open',
      rank: NO_RANK,
      comm_id: PREFIX + id,
      target_name: 'jupyter.widget',
      metadata: { version: '2.1.0' },
      data: { state, buffer_paths: [] }
    };
  }

  /** One after the other: a widget takes no messages before it is made. */
  private _then(act: () => Promise<void>): Promise<void> {
    this._chain = this._chain.then(act).catch(reason => console.error(reason));
    return this._chain;
  }

  private _chain: Promise<void> = Promise.resolve();
  private _opened = new Set<string>();
  private _sets = new Map<string, ISet>();
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _used = new Set<string>();
}

/** Of what stands for several. */
export const NO_RANK = -1;

function sharedName(id: string): string {
  return PREFIX + id;
}

function firstOf<T>(byRank: ReadonlyMap<number, T>): T {
  return byRank.values().next().value as T;
}

function areEqual(trees: readonly (IWidgetTree | null)[]): boolean {
  return trees.every(
    tree => tree !== null && tree.shape === trees[0]!.shape && tree.ids.length === trees[0]!.ids.length
  );
}
