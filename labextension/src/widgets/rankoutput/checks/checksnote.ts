/** What is wrong with the training of a cell: a line for each check, with its evidence; folded away by a click. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { SessionIds, sessionOf } from '../../../model/executions/sessionids';
import type { ICheck, ICodeLine, IExecution } from '../../../services/protocol';
import { Spoken } from '../../base/spoken';
import { linkedPlace } from '../../states/codelines';

const MAX_KEPT = 200;

const folded = new SessionIds('jupyter-dist:folded-checks', MAX_KEPT, sessionOf(window));
/** Kinds that the user does not want in a notebook. */
const muted = new SessionIds('jupyter-dist:muted-checks', MAX_KEPT, sessionOf(window));

export interface IChecksNoteOptions {
  trans: TranslationBundle;
  /** Whether the user wants to see them. */
  showsChecks(): boolean;
  /** Go to a line of a cell that ran on a group. */
  openLine(group: string, execution: string, place: ICodeLine): void;
}

export class ChecksNote {
  constructor(private readonly _options: IChecksNoteOptions) {
    this.node.className = 'jpd-Checks';
    this.node.append(this._spoken.node);
  }

  readonly node = document.createElement('div');

  /** Whether something is wrong. */
  get isShown(): boolean {
    return this.node.querySelector('.jpd-Check') !== null;
  }

  /** Show the checks of an execution; null: it is not followed any more, and its last checks stay. */
  update(group: string, id: string, execution: IExecution | null): void {
    if (!execution && id === this._id) {
      return;
    }
    this._id = id;
    const notebook = execution?.notebook ?? '';
    const shown = this._options.showsChecks() ? (execution?.checks ?? []) : [];
    const checks = shown.filter(({ kind }) => !muted.has([notebook, kind].join()));
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
    const { trans } = this._options;
    const line = element('div', 'jpd-Slow jpd-Check');
    line.setAttribute('role', 'group');
    line.setAttribute('aria-label', trans.__('What is wrong with the training'));
    const body = element('div', 'jpd-Check-body');
    const goTo = (place: ICodeLine): void => this._options.openLine(group, execution.id, place);
    body.append(this._text(check, goTo), this._why(check, execution, isOpen));
    const cell = [execution.notebook, execution.cell_id, check.kind].join();
    const fold = button('jpd-Slow-fold', trans.__('Wrong'));
    fold.setAttribute('aria-label', trans.__('Wrong')); // without the arrow of the style sheet
    const draw = (): void => {
      body.hidden = folded.has(cell);
      fold.setAttribute('aria-expanded', String(!body.hidden));
      fold.title = body.hidden ? check.message : trans.__('Fold this away');
    };
    fold.addEventListener('click', () => {
      folded[folded.has(cell) ? 'delete' : 'add'](cell);
      draw();
    });
    draw();
    line.append(fold, body);
    return line;
  }

  private _text({ message, line: place }: ICheck, goTo: (place: ICodeLine) => void): HTMLElement {
    const [before, link, after] = linkedPlace(this._options.trans, message, place);
    const text = element('div', 'jpd-Slow-text');
    text.append(before);
    if (place && link) {
      const anchor = button('jpd-Slow-link', link);
      anchor.title = this._options.trans.__('Go to this line');
      anchor.addEventListener('click', () => goTo(place));
      text.append(anchor, after);
    }
    return text;
  }

  private _why({ evidence, advice, kind }: ICheck, execution: IExecution, isOpen: boolean): HTMLElement {
    const { trans } = this._options;
    const why = element('details', 'jpd-Check-why') as HTMLDetailsElement;
    why.dataset.kind = kind;
    why.open = isOpen;
    const head = element('summary', '');
    head.textContent = trans.__('Evidence');
    const list = document.createElement('ul');
    for (const sentence of evidence) {
      list.append(Object.assign(document.createElement('li'), { textContent: sentence }));
    }
    const todo = Object.assign(document.createElement('p'), { textContent: advice });
    const mute = button('jpd-Ranks-action', trans.__('Not in this notebook'));
    mute.addEventListener('click', () => {
      muted.add([execution.notebook ?? '', kind].join());
      this._shown = '';
      this.update('', execution.id, execution);
    });
    why.append(head, list, todo, mute);
    return why;
  }

  private _id = '';
  private _shown = '';
  private readonly _spoken = new Spoken();
}

function element(name: string, className: string): HTMLElement {
  return Object.assign(document.createElement(name), { className });
}

function button(className: string, label: string): HTMLButtonElement {
  return Object.assign(document.createElement('button'), { type: 'button' as const, className, textContent: label });
}
