import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, IToolbarWidgetRegistry } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import type { ReactiveToolbar } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import { Contributions, guarded } from '../../model/contributions';
import type { IGroup } from '../../services/protocol';
import { nameFor } from '../../model/groups/wanted';
import { CommandIDs, ICellBadge, IDistCellBadges, IDistGroups, IDistGuard, IDistStarter } from '../../tokens';
import { mayTakeFocus } from '../../widgets/base/focus';
import { CellBadges } from '../../widgets/rankpicker/cellbadge';
import { PickerModel } from '../../widgets/rankpicker/pickermodel';
import type { IGroupAction, IStartActions } from '../../widgets/rankpicker/panel/pickeractions';
import { RankChoice } from '../../widgets/rankpicker/rankchoice';
import { RankPicker } from '../../widgets/rankpicker/rankpicker';
import { RanksOffNotice } from '../../widgets/rankpicker/ranksoff';
import { ToolbarFit } from '../../widgets/rankpicker/layout/toolbarfit';
import { focusPicker } from '../../widgets/rankpicker/layout/toolbarkeys';
import { isReachable, openGroupMenu, panelItems, stateItemsInOrder } from '../commands/groupmenu';
import { localPath, started, startWanted } from './startgroups';

const PICKER_ITEM = 'rank-target';
/** Beside it, while the group is missing or no cell can run on ranks. */
const NOTICE_ITEM = 'rank-choice';

export const rankPickerPlugin: JupyterFrontEndPlugin<IDistCellBadges> = {
  id: 'jupyter-dist:rank-picker',
  description: 'The rank picker in the notebook toolbar.',
  autoStart: true,
  requires: [IDistGroups, IDistStarter, INotebookTracker, IToolbarWidgetRegistry],
  optional: [ICommandPalette, ITranslator, IDistGuard],
  provides: IDistCellBadges,
  activate: (
    app: JupyterFrontEnd,
    groups: IDistGroups,
    starter: IDistStarter,
    tracker: INotebookTracker,
    toolbar: IToolbarWidgetRegistry,
    palette: ICommandPalette | null,
    translator: ITranslator | null,
    guard: IDistGuard | null
  ): IDistCellBadges => {
    const added = new Contributions<ICellBadge>();
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const pickers = new WeakMap<NotebookPanel, IPicker>();
    // Asked for when the panel opens: the plugins of parts may come after a restored notebook.
    const actions = (): readonly IGroupAction[] => groupActions(app, trans);
    const create = (panel: NotebookPanel): Widget => {
      const model = new PickerModel(panel, groups, starter);
      const focus = (): void => focusPicker(panel.toolbar.node, widget);
      const start = starts(app, panel, model, starter, trans, focus);
      const leave = (): void => panel.content.activate();
      const widget = new RankPicker({ model, trans, start, actions, leave });
      pickers.set(panel, { model, focus });
      const { startAgain } = start;
      const notice = guard?.trouble
        ? new RanksOffNotice(guard.trouble, trans)
        : new RankChoice({ model, trans, startAgain, leave });
      showNotice(panel, model, notice);
      const badges = new CellBadges(panel, trans, added);
      panel.disposed.connect(() => badges.dispose(), badges);
      return widget;
    };
    // An error here would leave the notebook without a toolbar, or closed.
    toolbar.addFactory<NotebookPanel>('Notebook', PICKER_ITEM, panel =>
      guarded('the rank picker', () => create(panel), new Widget())
    );
    const current = (): IPicker | null => (tracker.currentWidget && pickers.get(tracker.currentWidget)) ?? null;
    addCommands(app, current, trans);
    const category = trans.__('Ranks');
    palette?.addItem({ command: CommandIDs.overrideCell, category });
    palette?.addItem({ command: CommandIDs.focusPicker, category });
    return added;
  }
};

/** The picker of one notebook. */
interface IPicker {
  readonly model: PickerModel;
  focus(): void;
}

/** What the panel does with the chosen group; all else is in the menu of its card, which the last one opens. */
function groupActions(app: JupyterFrontEnd, trans: TranslationBundle): readonly IGroupAction[] {
  const { commands } = app;
  const run = (command: string) => (group: IGroup) => void commands.execute(command, { group: group.id });
  const openConsole = (group: IGroup, ranks: string): void =>
    void commands.execute(CommandIDs.openConsole, { group: group.id, ranks });
  const panels = panelItems().flatMap(({ command, brief }) =>
    brief ? [{ label: brief, isEnabled: isReachable, run: run(command) }] : []
  );
  const states = stateItemsInOrder().flatMap(({ command, brief, isEnabled = isReachable }) =>
    brief ? [{ label: brief, isEnabled, run: run(command) }] : []
  );
  return [
    { label: trans.__('New console'), isEnabled: isReachable, run: openConsole },
    ...panels,
    ...states,
    {
      label: trans.__('More\u2026'),
      isEnabled: () => true,
      run: (group, _, button) => button && openGroupMenu(app, group, button, trans)
    }
  ];
}

/** The three ways to start a group for a notebook; its cells run there. */
function starts(
  app: JupyterFrontEnd,
  panel: NotebookPanel,
  model: PickerModel,
  starter: IDistStarter,
  trans: TranslationBundle,
  focus: () => void
): IStartActions {
  const choose = async (starting: Promise<IGroup | null>): Promise<void> => {
    const chosen = model.groupChoice();
    const group = await starting;
    if (group && !panel.isDisposed) {
      chosen(group);
      if (mayTakeFocus(panel.toolbar.node)) {
        focus();
      }
    }
  };
  const notebook = (): string => localPath(app, panel);
  return {
    startGroup: () => void choose(app.commands.execute(CommandIDs.startGroup, { notebook: panel.context.path })),
    startAgain: () => void (model.missing && choose(startWanted(app, starter, panel, model.missing.name, trans))),
    startNew: ranks => {
      const name = nameFor(notebook(), model.groups);
      const read = { wanted: { num_ranks: ranks }, refused: [] };
      void choose(started(app, panel, name, read, () => starter.startNew(ranks, notebook())));
    }
  };
}

/** Show, beside the picker, the button that starts a missing group, or that ranks are unavailable on this page. */
function showNotice(panel: NotebookPanel, model: PickerModel, notice: RankChoice | RanksOffNotice): void {
  const fit = new ToolbarFit(panel.toolbar as ReactiveToolbar, notice, PICKER_ITEM, NOTICE_ITEM);
  panel.disposed.connect(() => {
    fit.dispose();
    notice.dispose();
  }, notice);
  const isShown = (): boolean => (notice instanceof RanksOffNotice ? model.target !== null : model.missing !== null);
  const update = (): void => fit.show(isShown() ? 0 : null);
  model.changed.connect(update, notice);
  // The picker is in the toolbar only after its factory has returned.
  void panel.revealed.then(update);
}

function addCommands(app: JupyterFrontEnd, current: () => IPicker | null, trans: TranslationBundle): void {
  const describedBy = { args: { type: 'object', properties: {} } } as const;
  app.commands.addCommand(CommandIDs.overrideCell, {
    label: trans.__('Choose Ranks for the Selected Cells Only'),
    caption: trans.__('Set a target for the selected cells, or clear it'),
    describedBy,
    isEnabled: () => current() !== null,
    isToggled: () => current()?.model.isOverride ?? false,
    execute: () => {
      const { model } = current() ?? {};
      model?.setOverride(!model.isOverride);
    }
  });
  app.commands.addCommand(CommandIDs.focusPicker, {
    label: trans.__('Choose Where Cells Run'),
    caption: trans.__('Focus the rank picker'),
    describedBy,
    isEnabled: () => current() !== null,
    execute: () => current()?.focus()
  });
}
