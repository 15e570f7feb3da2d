/** The notes of parts and other extensions in the header of one output of ranks. */
import { guarded } from '../../../model/contributions';
import type { IDistHeaderNotes, IHeaderNote, INoteContext, IShownCell } from '../../../tokens';

export class HeaderNotes {
  constructor(parts: IDistHeaderNotes, context: INoteContext) {
    this._notes = parts.items.flatMap(part => guarded(part.id, () => [part.create(context)], []));
  }

  get nodes(): readonly HTMLElement[] {
    return this._notes.flatMap(({ node }) => node ?? []);
  }

  get labels(): readonly HTMLElement[] {
    return this._notes.flatMap(({ label }) => label ?? []);
  }

  get buttons(): readonly HTMLElement[] {
    return this._notes.flatMap(({ button }) => button ?? []);
  }

  get isShown(): boolean {
    return this._notes.some(({ isShown }) => isShown);
  }

  get coversRanks(): boolean {
    return this._notes.some(({ coversRanks, isShown }) => coversRanks && isShown);
  }

  get hint(): string {
    return this._notes
      .map(({ hint = '' }) => hint)
      .join(' ')
      .trim();
  }

  watch(header: HTMLElement): void {
    this._notes.forEach(note => note.watch?.(header));
  }

  update(cell: IShownCell): void {
    let { isHung } = cell;
    for (const note of this._notes) {
      guarded('A note', () => note.update({ ...cell, isHung }), undefined);
      isHung ||= note.explainsHang === true && note.isShown;
    }
  }

  dispose(): void {
    this._notes.forEach(note => note.dispose?.());
  }

  private readonly _notes: readonly IHeaderNote[];
}
