/** What is wrong with the training of a cell: a line for each check, with its evidence; folded away by a click. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { FoldedCells } from '../../model/executions/foldedcells';
import { SessionIds, sessionOf } from '../../model/executions/sessionids';
import type { ICheck, ICodeLine, IExecution } from '../../services/protocol';
import { foundInWords } from '../../services/words';
import type { IHeaderNote, INoteContext, IShownCell } from '../../tokens';
import { Spoken } from '../../widgets/base/spoken';
import { NoteLine } from '../../widgets/rankoutput/found/noteline';

const MAX_KEPT = 200;

const folded = new FoldedCells('folded-checks');
/** Kinds that the user does not want in a notebook. */
const muted = new SessionIds('jupyter-dist:muted-checks', MAX_KEPT, sessionOf(window));

export interface IChecksNoteOptions extends INoteContext {
  trans: TranslationBundle;
  /** Whether the user wants to see them. */
  showsChecks(): boolean;
}

export class ChecksNote implements IHeaderNote {
  constructor(private readonly _options: IChecksNoteOptions) {
    this.node.className = 'jpd-Checks';
    this.node.append(this._spoken.node);
  }

  readonly node = document.createElement('div');

  /** Whether something is wrong. */
  get isShown(): boolean {
    return this.node.querySelector('.jpd-Check') !== null;
  }

  /** Show the checks of a cell; a cell that is not followed any more keeps its last checks. */
  update({ bundle, execution, isStale }: IShownCell): void {
    const { execution_id: id, group } = bundle;
    const known = isStale ? null : execution;
    if (known || id !== this._id) {
      this._id = id;
      this._show(group.id, known);
    }
  }

  private _show(group: string, execution: IExecution | null): void {
    const notebook = execution?.notebook ?? '';
    const shown = this._options.showsChecks() ? (execution?.checks ?? []) : [];
    const wanted = shown.filter(({ kind }) => !muted.has([notebook, kind].join()));
    const checks = wanted.map(check => foundInWords(this._options.trans, check));
    const key = JSON.stringify([execution?.id, checks]);
    if (key === this._shown) {
      return;
    }
    this._shown = key;
    const opened = new Set(
      [...this.node.querySelectorAll('details[open]')].map(node => node.getAttribute('data-kind'))
    );
    this._spoken.say(checks[0]?.message ?? '');
    const lines = checks.map(check => this._line(check, group, execution!, opened.has(check.kind)));
    this.node.replaceChildren(this._spoken.node, ...lines);
  }

  private _line(check: ICheck, group: string, execution: IExecution, isOpen: boolean): HTMLElement {
    const { trans, openLine } = this._options;
    const line = new NoteLine({
      trans,
      folded,
      goTo: (place: ICodeLine) => openLine(group, execution.id, place),
      word: trans.__('Wrong'),
      label: trans.__('What is wrong with the training'),
      more: this._why(check, group, execution, isOpen)
    });
    line.node.classList.add('jpd-Check');
    line.show([execution.notebook, execution.cell_id, check.kind].join(), check.message, check.line);
    return line.node;
  }

  private _why({ evidence, advice, kind }: ICheck, group: string, execution: IExecution, isOpen: boolean): HTMLElement {
    const { trans } = this._options;
    const why = Object.assign(document.createElement('details'), { className: 'jpd-Check-why' });
    why.dataset.kind = kind;
    why.open = isOpen;
    const head = Object.assign(document.createElement('summary'), { textContent: trans.__('Evidence') });
    const list = document.createElement('ul');
    list.append(...evidence.map(sentence => Object.assign(document.createElement('li'), { textContent: sentence })));
    const todo = Object.assign(document.createElement('p'), { textContent: advice });
    const mute = Object.assign(document.createElement('button'), { type: 'button', className: 'jpd-Ranks-action' });
    mute.textContent = trans.__('Not in this notebook');
    mute.addEventListener('click', () => {
      muted.add([execution.notebook ?? '', kind].join());
      this._show(group, execution);
    });
    why.append(head, list, todo, mute);
    return why;
  }

  private _id = '';
  private _shown = '';
  private readonly _spoken = new Spoken();
}
