/** The line in a running cell about why it is slow. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { FoldedCells } from '../../model/executions/foldedcells';
import type { ICodeLine, ISlowCause } from '../../services/protocol';
import { foundInWords } from '../../services/words';
import { Spoken } from '../../widgets/base/spoken';
import { NoteLine } from '../../widgets/rankoutput/found/noteline';

const folded = new FoldedCells('folded-slowness');

export interface ISlowLineOptions {
  trans: TranslationBundle;
  goTo(place: ICodeLine): void;
  /** The button that shows the details. */
  details: HTMLElement;
}

export class SlowLine {
  constructor({ trans, goTo, details }: ISlowLineOptions) {
    this._trans = trans;
    const [word, label] = [trans.__('Slow'), trans.__('Why the cell is slow')];
    this._line = new NoteLine({ trans, folded, goTo, word, label, more: details });
    this.node = this._line.node;
    this.node.hidden = true;
  }

  readonly node: HTMLElement;

  /** What screen readers announce; not in the line, which is hidden before. */
  get spoken(): HTMLElement {
    return this._spoken.node;
  }

  /** Show the costliest cause; none: nothing. `cell`: what is remembered as folded. */
  update(found: readonly ISlowCause[], cell: string): void {
    const causes = found.map(cause => foundInWords(this._trans, cause));
    const [first] = causes;
    this.node.hidden = !first;
    this._say(causes);
    if (first) {
      this._line.show(cell, first.message, first.place, causes.map(({ message }) => message).join('\n'));
    }
  }

  /** The numbers change with each look; what is announced does not. */
  private _say(causes: readonly ISlowCause[]): void {
    const about = causes.map(({ kind, ranks }) => `${kind} ${ranks}`).join();
    if (about !== this._about) {
      this._about = about;
      this._spoken.say(causes[0]?.message ?? '');
    }
  }

  private _about = '';
  private readonly _line: NoteLine;
  private readonly _spoken = new Spoken();
  private readonly _trans: TranslationBundle;
}
