/** Why a cell does not end, in its header: from the agent of its group, or in its output, from a kernel or another page. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IExecution, IRankStack, IRanksBundle, IVerdict, IVerdicts } from '../../services/protocol';
import type { IHeaderNote, IShownCell } from '../../tokens';
import { RefutedNote } from '../../widgets/rankoutput/found/refutednote';
import { readVerdict } from './savedverdict';
import { VerdictCard } from './verdictcard';

/** What its buttons do. */
export interface IHangActions {
  /** Interrupt the ranks that wait. */
  interrupt(group: string, ranks: string): void;
  /** Run the cell, as it was submitted, on more ranks; resolves when that was tried. */
  extend(group: string, execution: string, ranks: string): Promise<void>;
  /** Where all ranks are now. */
  stacks(group: string): Promise<IRankStack[]>;
  /** The verdicts on the cells of a group, and whether they were wrong. */
  verdicts(group: string): Promise<IVerdicts>;
}

export class HangNote implements IHeaderNote {
  /** `actions`: null where there is no server, so that only what the output has is known. */
  constructor(trans: TranslationBundle, actions: IHangActions | null) {
    const buttons = actions && {
      interrupt: () => actions.interrupt(this._group, this._verdict!.waiting.map(({ ranks }) => ranks).join(',')),
      extend: (ranks: string) => actions.extend(this._group, this._bundle!.execution_id, ranks),
      stacks: () => actions.stacks(this._group)
    };
    this._card = new VerdictCard(trans, buttons);
    this._refuted =
      actions &&
      new RefutedNote({
        trans,
        verdicts: group => actions.verdicts(group),
        title: trans.__('It was shown that this cell cannot end. That was wrong.'),
        kindsOf
      });
    this.node.append(this._card.node, this._card.past, ...(this._refuted ? [this._refuted.node] : []));
  }

  readonly node = document.createElement('div');
  readonly coversRanks = true;
  readonly explainsHang = true;

  get isShown(): boolean {
    return this._verdict !== null;
  }

  update(shown: IShownCell): void {
    const { bundle, execution, isStale, now } = shown;
    this._bundle = bundle;
    // Another page's cell is not trusted here: it shows what that page has written.
    this._verdict = execution ? verdictOf(execution) : savedVerdict(shown);
    const until = execution?.ended_at ?? bundle.ended_at ?? now;
    const canAct = execution !== null;
    this._card.update({ execution: bundle.execution_id, verdict: this._verdict, isStale, until, canAct });
    this._refuted?.update(bundle.group.id, execution);
    if (isStale) {
      this._verdict = null;
    }
  }

  dispose(): void {
    this._card.dispose();
  }

  private get _group(): string {
    return this._bundle!.group.id;
  }

  private _bundle: IRanksBundle | null = null;
  private readonly _card: VerdictCard;
  private readonly _refuted: RefutedNote | null;
  /** What is shown. */
  private _verdict: IVerdict | null = null;
}

function verdictOf({ state, verdict }: IExecution): IVerdict | null {
  return state === 'running' ? (verdict ?? null) : null;
}

function savedVerdict({ bundle, unchecked }: IShownCell): IVerdict | null {
  return bundle.state === 'running' ? readVerdict(unchecked) : null;
}

function kindsOf({ verdict }: IExecution): string[] {
  return verdict?.kind === 'cannot_end' ? [verdict.kind] : [];
}
