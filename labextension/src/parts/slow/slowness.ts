/** What a cell shows about its speed: why it is slow while it runs, where its time went, and verdicts that were wrong. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { FINAL_STATES, ICodeLine, IPace, IRanksBundle, ISlowCause, IVerdicts } from '../../services/protocol';
import type { IHeaderNote, INoteContext, IShownCell } from '../../tokens';
import { RefutedNote } from '../../widgets/rankoutput/found/refutednote';
import { PacePanel } from './pace/pacepanel';
import { paceHint } from './pace/pacewords';
import { SlowLine } from './slowline';

/** Cells that run for less are not watched. */
const LEAST_SECONDS = 4;

export interface ISlownessOptions extends INoteContext {
  trans: TranslationBundle;
  pace(group: string, execution: string): Promise<IPace>;
  verdicts(group: string): Promise<IVerdicts>;
}

export class Slowness implements IHeaderNote {
  constructor(private readonly _options: ISlownessOptions) {
    const { trans, verdicts, openLine } = _options;
    const goTo = (place: ICodeLine): void => openLine(this._bundle!.group.id, this._bundle!.execution_id, place);
    this._panel = new PacePanel({ trans, goTo, fetch: () => this._fetch() });
    this.button = this._panel.createOpener('jpd-Ranks-action jpd-Pace-open', trans.__('Time'));
    this.button.hidden = true;
    const details = this._panel.createOpener('jpd-Ranks-action', trans.__('Details'));
    this._line = new SlowLine({ trans, goTo, details });
    this._refuted = new RefutedNote({
      trans,
      verdicts,
      title: trans.__('A cause of slowness was shown, and was gone after a few seconds: it may have been wrong.'),
      kindsOf: ({ slowness = [] }) => slowness.map(({ kind }) => kind)
    });
    this.node.className = 'jpd-Slowness';
    this.node.append(this._line.spoken, this._line.node, this._refuted.node, this._panel.node);
  }

  /** For the header of a cell that has ended, or runs without a cause that is shown: opens the details. */
  readonly button: HTMLButtonElement;
  readonly node = document.createElement('div');
  readonly coversRanks = true;

  /** Where the time of an ended cell went, in short; empty if it is not known. */
  get hint(): string {
    return this._known ? paceHint(this._options.trans, this._known) : '';
  }

  /** Whether it is shown why the cell is slow; folded, too. */
  get isShown(): boolean {
    return !this._line.node.hidden;
  }

  /** Ask for the pace of a cell from an earlier time when the pointer or the focus comes to its header. */
  watch(header: HTMLElement): void {
    ['pointerenter', 'focusin'].forEach(type => header.addEventListener(type, () => void this._askOnce()));
  }

  update(shown: IShownCell): void {
    const { bundle, execution } = shown;
    if (bundle.execution_id !== this._bundle?.execution_id) {
      this._known = null;
      this._isAsked = false;
      this._panel.model.reset();
    }
    this._bundle = bundle;
    this._mayAsk = shown.isTrusted && FINAL_STATES.has(bundle.state) && secondsOf(bundle) >= LEAST_SECONDS;
    this._line.update(causesOf(shown), [bundle.group.name, execution?.notebook, execution?.cell_id].join());
    this._refuted.update(bundle.group.id, execution);
    if (FINAL_STATES.has(execution?.state ?? bundle.state)) {
      this._end(execution?.pace ?? this._known);
    } else {
      this._showButton(isWatched(shown, this.isShown), '');
    }
  }

  dispose(): void {
    this._panel.dispose();
  }

  private _end(pace: IPace | null): void {
    this._known = pace;
    this._panel.model.end(pace);
    this._showButton(pace !== null, this.hint);
  }

  private _showButton(isShown: boolean, hint: string): void {
    // It stays while it has the focus, or has opened the details.
    const isUsed = this.button === document.activeElement || this._panel.model.isOpen;
    this.button.hidden = !isShown && (this.button.hidden || !isUsed);
    this.button.title = hint || this._options.trans.__('Where the time goes');
  }

  private async _fetch(): Promise<IPace> {
    const { group, execution_id: id } = this._bundle!;
    return this._options.pace(group.id, id);
  }

  private async _askOnce(): Promise<void> {
    if (this._isAsked || this._known || !this._mayAsk) {
      return;
    }
    this._isAsked = true;
    const asked = this._bundle?.execution_id;
    try {
      const pace = await this._fetch();
      if (asked === this._bundle?.execution_id) {
        this._end(pace);
      }
    } catch {
      // The cell was not watched, or its group is gone: there is nothing to show.
    }
  }

  private _bundle: IRanksBundle | null = null;
  private _isAsked = false;
  private _known: IPace | null = null;
  private readonly _line: SlowLine;
  private _mayAsk = false;
  private readonly _panel: PacePanel;
  private readonly _refuted: RefutedNote;
}

/** Whether a cell has run long enough for the server to know where its time goes, and nothing else leads there. */
function isWatched({ execution, isStale, isHung, now }: IShownCell, hasLine: boolean): boolean {
  const begin = execution?.state === 'running' && !(isStale || isHung || hasLine) ? execution.started_at : null;
  return begin !== null && now - begin >= LEAST_SECONDS;
}

function secondsOf({ started_at: start, ended_at: end }: IRanksBundle): number {
  return start && end ? end - start : 0;
}

/** What is shown: not beside why a cell does not end, and nothing that is not known to hold now. */
function causesOf({ execution, isStale, isHung }: IShownCell): readonly ISlowCause[] {
  return execution?.state === 'running' && !isStale && !isHung ? (execution.slowness ?? []) : [];
}
