/** The cells that can be undone, for other extensions. */
import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';
import type { IGroup, IUndoableCell, IUndoCost } from '../../services/protocol';

/** What is known of an execution that kept undo. */
export interface IUndoNote {
  /** What keeping it has cost; null if it was run without *keep undo*. */
  readonly cost: IUndoCost | null;
  /** When it was undone; null if it was not. */
  readonly undoneAt: number | null;
}

/** Which cells can be undone, and which have been. */
export interface IDistUndo {
  /** Emitted when any of this has changed. */
  readonly changed: ISignal<IDistUndo, void>;
  /** The cells of a group that can be undone, newest first; none while that is not known. */
  cells(group: string): readonly IUndoableCell[];
  /** The undone cells that can be done again, in this order. */
  undone(group: string): readonly IUndoableCell[];
  /** What is known of an execution; null if it kept no undo, or its group is not followed. */
  noteOn(group: string, execution: string): IUndoNote | null;
  /** Follow a group: ask about it now, and when its cells have ended. */
  follow(group: IGroup): void;
}

export const IDistUndo = new Token<IDistUndo>(
  'jupyter-dist:IDistUndo',
  'Which cells on ranks can be undone, and which have been.'
);
