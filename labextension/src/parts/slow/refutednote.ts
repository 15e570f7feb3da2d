/** A small note in a cell for which a verdict was shown that turned out to be wrong. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IExecution, IVerdictRecord, IVerdicts } from '../../services/protocol';
import { inWords } from '../../services/words';

export class RefutedNote {
  constructor(
    private readonly _trans: TranslationBundle,
    private readonly _verdicts: (group: string) => Promise<IVerdicts>
  ) {
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
      this._show([]);
    }
    const present = kindsOf(execution);
    if ([...this._shown].some(kind => !present.has(kind))) {
      void this._ask(group, execution.id);
    }
    this._shown = present;
  }

  private async _ask(group: string, execution: string): Promise<void> {
    try {
      const { verdicts } = await this._verdicts(group);
      if (execution === this._execution) {
        this._show(verdicts.filter(({ execution_id: id, outcome }) => id === execution && outcome === 'refuted'));
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

  private _entry({ kind, message, message_words: words, witnesses }: IVerdictRecord): HTMLElement {
    const trans = this._trans;
    const entry = document.createElement('details');
    const title = document.createElement('summary');
    title.textContent =
      kind === 'cannot_end'
        ? trans.__('It was shown that this cell cannot end. That was wrong.')
        : trans.__('A cause of slowness was shown, and was gone after a few seconds: it may have been wrong.');
    // In a notebook's command mode Enter edits the cell; here it opens the details.
    title.dataset.lmSuppressShortcuts = 'true';
    const list = document.createElement('ul');
    list.append(
      ...[inWords(trans, message, words), ...witnesses].map(text => {
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
  private _shape = '[]';
  private _shown: ReadonlySet<string> = new Set();
}

/** What is shown of an execution now. */
function kindsOf({ verdict, slowness = [] }: IExecution): Set<string> {
  return new Set([...(verdict?.kind === 'cannot_end' ? [verdict.kind] : []), ...slowness.map(({ kind }) => kind)]);
}
