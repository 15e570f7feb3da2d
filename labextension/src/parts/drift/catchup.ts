/** Runs missed cells on the ranks that missed them: offer, dialog and notifications. Loaded when it is first used. */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { IAnswer, isOffered, ICatchUpOutcome, IMissedStep, runSteps, stepsOf } from './model/steps';
import { MissedOffer } from './model/offer';
import { capitalized } from '../../model/format/characters';
import { formatRanks, lowestRank } from '../../model/format/ranks';
import type { IDrift, IGroup } from '../../services/protocol';
import type { IDistExecutions, IDistGroups, IDistService } from '../../tokens';
import { notifyError } from '../../widgets/base/errornote';
import { CatchUpDialog } from './driftdialog';
import { cellName } from './driftwords';
import { GroupNotice, notifyGroup } from '../../widgets/notices/groupnotices';
import { rankSetLabel } from '../../widgets/rankoutput/items/itemrow';

const SHORT_MS = 8000;
/** A shorter run is not worth a notification. */
const QUICK_MS = 1000;

export class CatchUp {
  constructor(
    private readonly _service: IDistService,
    private readonly _groups: IDistGroups,
    private readonly _executions: IDistExecutions,
    private readonly _openLog: (group: string, rank: number) => void,
    private readonly _trans: TranslationBundle
  ) {}

  /** Notify the user of cells that replaced ranks have missed, for as long as there are any. */
  async offer({ id }: IGroup): Promise<void> {
    this._offers.get(id)?.end();
    const offer = new MissedOffer(this._service, this._groups, id);
    this._offers.set(id, offer);
    let notice: GroupNotice | null = null;
    offer.changed.connect(() => {
      const { group, cells } = offer;
      if (!group || cells === 0) {
        notice?.end();
        offer.dispose();
      } else if (notice) {
        notice.update(this._offerText(group, cells));
      } else {
        const actions = [{ label: this._trans.__('Catch up\u2026'), callback: () => void this._accept(group) }];
        const closed = (): void => offer.dispose();
        notice = notifyGroup(id, this._offerText(group, cells), 'info', {
          autoClose: false,
          actions,
          closed,
          holds: true
        });
      }
    });
    await offer.look();
  }

  /** Show the cells that replaced ranks have missed, if there are any, as the user has asked for before. */
  async showMissed(group: IGroup): Promise<void> {
    if ((await this._service.drift(group.id)).cells.some(({ offered }) => offered)) {
      await this.show(group, null);
    }
  }

  private _offerText(group: IGroup, cells: number): string {
    const { _trans: trans } = this;
    const replaced = group.ranks.filter(({ absences }) => absences?.length).map(({ rank }) => rank);
    const words = [cells, capitalized(rankSetLabel(trans, formatRanks(replaced))), group.name] as const;
    return replaced.length === 1
      ? trans._n(
          '%2 of %3 was replaced, and has missed %1 cell.',
          '%2 of %3 was replaced, and has missed %1 cells.',
          ...words
        )
      : trans._n(
          '%2 of %3 were replaced, and have missed %1 cell.',
          '%2 of %3 were replaced, and have missed %1 cells.',
          ...words
        );
  }

  private async _accept(group: IGroup): Promise<void> {
    try {
      await this.show(group, null);
    } catch (reason) {
      notifyError(reason, { group: group.id });
    }
  }

  /** Show what ranks have missed; run what the user confirms. */
  async show(group: IGroup, execution: string | null): Promise<void> {
    const { _trans: trans } = this;
    const drift = await this._service.drift(group.id);
    const steps = stepsOf(drift);
    const dialog = new CatchUpDialog({
      trans,
      group: group.name,
      drift,
      rows: steps.map(step => ({ step, isChecked: isOffered(step, execution) }))
    });
    const { button, value } = await dialog.launch();
    if (button.accept && value?.length) {
      await this._run(group, value, drift);
    }
  }

  private async _run(group: IGroup, steps: readonly IMissedStep[], drift: IDrift): Promise<void> {
    const { _trans: trans } = this;
    let notice: GroupNotice | null = null;
    let progress = '';
    const show = (): GroupNotice => notifyGroup(group.id, progress, 'in-progress', { autoClose: false, holds: true });
    const timer = setTimeout(() => (notice = show()), QUICK_MS);
    const outcome = await runSteps(steps, {
      executions: this._executions,
      group: group.id,
      begin: (step, index) => {
        progress = trans.__(
          '%1 of %2: %3 on %4',
          index + 1,
          steps.length,
          cellName(step.cell),
          rankSetLabel(trans, step.ranks)
        );
        notice?.update(progress);
      },
      ask: (step, message) => this._ask(step, message)
    });
    clearTimeout(timer);
    // In a callback, which TypeScript does not follow.
    (notice as GroupNotice | null)?.end();
    const message = this._textOf(outcome, steps, drift);
    const { failed } = outcome;
    const log = {
      label: trans.__('Show the log'),
      callback: () => this._openLog(group.id, lowestRank(failed?.step.ranks ?? '0') ?? 0)
    };
    if (!failed) {
      notifyGroup(group.id, message, 'success', { autoClose: SHORT_MS });
      return;
    }
    // Shown until nothing is missed any more, also if another page has run it.
    const left = new MissedOffer(this._service, this._groups, group.id);
    const stopped = notifyGroup(group.id, message, 'error', {
      autoClose: false,
      actions: [log],
      closed: () => left.dispose()
    });
    left.changed.connect(() => {
      // A dead rank has missed nothing until it is replaced: the cell in which it died is named until then.
      if (stopped.isOver || (left.cells === 0 && left.group?.state !== 'degraded')) {
        stopped.end();
        left.dispose();
      }
    });
    await left.look();
  }

  /** On the ranks that missed it, a cell that needs all ranks would wait forever, unless the others run it again. */
  private async _ask(step: IMissedStep, message: string): Promise<IAnswer> {
    const { _trans: trans } = this;
    const { button } = await showDialog({
      title: trans.__('Run %1 on all ranks?', cellName(step.cell)),
      body: trans.__('%1 The other ranks would run it again.', message),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Stop Here') }),
        Dialog.createButton({
          label: trans.__('Skip It'),
          caption: trans.__('Run the others, but for those that use what it sets or changes'),
          actions: ['skip']
        }),
        Dialog.createButton({ label: trans.__('Run Anyway'), actions: ['anyway'] }),
        Dialog.okButton({ label: trans.__('Run on All'), actions: ['all'] })
      ],
      defaultButton: 0
    });
    const [action] = button.actions;
    return action === 'all'
      ? { ranks: 'all' }
      : action === 'anyway'
        ? { ranks: step.ranks }
        : action === 'skip'
          ? 'skip'
          : 'stop';
  }

  private _textOf(
    { done, skipped, failed }: ICatchUpOutcome,
    steps: readonly IMissedStep[],
    { left_out: more }: IDrift
  ): string {
    const { _trans: trans } = this;
    if (!failed) {
      const ran = trans._n('%1 cell ran.', '%1 cells ran.', done);
      const left = trans._n('%1 cell was not run.', '%1 cells were not run.', skipped.length);
      const text =
        skipped.length > 0 ? `${ran} ${left} ${trans.__('To have their values, run them again on all ranks.')}` : ran;
      return more > 0 ? trans.__('%1 There are more: open the dialog again.', text) : text;
    }
    const place = trans.__('%1 on %2', cellName(failed.step.cell), rankSetLabel(trans, failed.step.ranks));
    const stopped = failed.why ? trans.__('Stopped at %1: %2', place, failed.why) : trans.__('Stopped at %1.', place);
    const left = steps.length - done - 1;
    return left > 0 ? `${stopped} ${trans._n('%1 cell was not run.', '%1 cells were not run.', left)}` : stopped;
  }

  /** By group. */
  private readonly _offers = new Map<string, MissedOffer>();
}
