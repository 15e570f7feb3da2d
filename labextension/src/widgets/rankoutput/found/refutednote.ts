/** A small note in a cell for which a verdict was shown that turned out to be wrong. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IExecution, IVerdictRecord, IVerdicts } from '../../../services/protocol';
import { inWords } from '../../../services/words';

export interface IRefutedOptions {
  trans: TranslationBundle;
  /** The line above the verdict. */
  title: string;
  verdicts(group: string): Promise<IVerdicts>;
  /** The kinds of the verdicts that are shown of an execution now. */
  kindsOf(execution: IExecution): readonly string[];
}

export class RefutedNote {
  constructor(private readonly _options: IRefutedOptions) {
    this.node.className = 'jpd-Refuted';
    this.node.hidden = true;
  }

  readonly node = document.createElement('div');

  /** Follow an execution: when a verdict that was shown has gone, ask whether it was wrong. */
  update(group: string, execution: IExecution | null): void {
    if (!execution) {
      return;
    }
    if (execution.id !== this._execution) {
      this._execution = execution.id;
      this._shown = new Set();
      this._gone.clear();
      this._show([]);
    }
    const present = new Set(this._options.kindsOf(execution));
    const gone = [...this._shown].filter(kind => !present.has(kind));
    if (gone.length > 0) {
      gone.forEach(kind => this._gone.add(kind));
      void this._ask(group, execution.id);
    }
    this._shown = present;
  }

  private async _ask(group: string, execution: string): Promise<void> {
    try {
      const { verdicts } = await this._options.verdicts(group);
      if (execution === this._execution) {
        const mine = verdicts.filter(({ execution_id: id, kind }) => id === execution && this._gone.has(kind));
        this._show(mine.filter(({ outcome }) => outcome === 'refuted'));
      }
    } catch (reason) {
      console.debug('jupyter_dist: the verdicts could not be read', reason);
    }
  }

  private _show(refuted: readonly IVerdictRecord[]): void {
    const shape = JSON.stringify(refuted);
    if (shape !== this._shape) {
      this._shape = shape;
      this.node.hidden = refuted.length === 0;
      this.node.replaceChildren(...refuted.map(record => this._entry(record)));
    }
  }

  private _entry({ message, message_words, witnesses, witnesses_words }: IVerdictRecord): HTMLElement {
    const { trans } = this._options;
    const entry = document.createElement('details');
    const title = document.createElement('summary');
    title.textContent = this._options.title;
    // In a notebook's command mode Enter edits the cell; here it opens the details.
    title.dataset.lmSuppressShortcuts = 'true';
    const list = document.createElement('ul');
    list.append(
      ...[
        inWords(trans, message, message_words),
        ...witnesses.map((one, i) => inWords(trans, one, witnesses_words?.[i]))
      ].map(text => {
        const row = document.createElement('li');
        row.textContent = text;
        return row;
      })
    );
    const report = document.createElement('p');
    report.textContent = trans.__('Please report it with the output of %1.', 'jupyter dist verdicts --json');
    entry.append(title, list, report);
    return entry;
  }

  private _execution = '';
  private readonly _gone = new Set<string>();
  private _shape = '[]';
  private _shown: ReadonlySet<string> = new Set();
}
