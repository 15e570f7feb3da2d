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
import { RankChoice } from '../../widgets/rankpicker/rankchoice';
import { RanksOffNotice } from '../../widgets/rankpicker/ranksoff';
import { TargetSelect } from '../../widgets/rankpicker/targetselect';
import { ToolbarFit } from '../../widgets/rankpicker/layout/toolbarfit';
import { focusPicker } from '../../widgets/rankpicker/layout/toolbarkeys';
import { localPath, started, startWanted } from './startgroups';

const SELECT_ITEM = 'rank-target';
const CHOICE_ITEM = 'rank-choice';

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
    const models = new WeakMap<NotebookPanel, PickerModel>();
    const picker = (panel: NotebookPanel): Widget => {
      const model = new PickerModel(panel, groups, starter);
      models.set(panel, model);
      const start = starts(app, panel, model, starter, trans);
      const leave = (): void => panel.content.activate();
      showChoice(panel, model, choiceOf(model, guard, trans, { startAgain: start.startAgain, leave }));
      const badges = new CellBadges(panel, trans, added);
      panel.disposed.connect(() => badges.dispose(), badges);
      const openConsole = (): void => {
        const { group, target } = model;
        void app.commands.execute(CommandIDs.openConsole, { group: group?.id ?? null, ranks: target?.ranks ?? 'all' });
      };
      const openVariables = (): void => {
        void app.commands.execute(CommandIDs.openVariables, { group: model.group?.id ?? null });
      };
      return new TargetSelect({ model, trans, openConsole, openVariables, ...start });
    };
    // An error here would leave the notebook without a toolbar, or closed.
    toolbar.addFactory<NotebookPanel>('Notebook', SELECT_ITEM, panel =>
      guarded('the rank picker', () => picker(panel), new Widget())
    );
    const current = (): PickerModel | null => (tracker.currentWidget && models.get(tracker.currentWidget)) ?? null;
    addCommands(app, tracker, current, trans);
    const category = trans.__('Ranks');
    palette?.addItem({ command: CommandIDs.overrideCell, category });
    palette?.addItem({ command: CommandIDs.focusPicker, category });
    return added;
  }
};

/** The three ways to start a group for a notebook; its cells run there. */
function starts(
  app: JupyterFrontEnd,
  panel: NotebookPanel,
  model: PickerModel,
  starter: IDistStarter,
  trans: TranslationBundle
): { startGroup(): void; startAgain(): void; startNew(ranks: number): void } {
  const choose = async (starting: Promise<IGroup | null>): Promise<void> => {
    const chosen = model.groupChoice();
    const group = await starting;
    if (group && !panel.isDisposed) {
      chosen(group);
      if (mayTakeFocus(panel.toolbar.node)) {
        focusPicker(panel.toolbar.node);
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

/** The second part of the picker: which ranks, or that ranks are unavailable on this page. */
function choiceOf(
  model: PickerModel,
  guard: IDistGuard | null,
  trans: TranslationBundle,
  acts: { startAgain(): void; leave(): void }
): Widget {
  return guard?.trouble ? new RanksOffNotice(guard.trouble, trans) : new RankChoice({ model, trans, ...acts });
}

/** Show the second part of the picker while a group is chosen. */
function showChoice(panel: NotebookPanel, model: PickerModel, choice: Widget): void {
  const fit = new ToolbarFit(panel.toolbar as ReactiveToolbar, choice, SELECT_ITEM, CHOICE_ITEM);
  panel.disposed.connect(() => {
    fit.dispose();
    choice.dispose();
  }, choice);
  const update = (): void => fit.show(model.target ? (model.missing ? 0 : (model.group?.world_size ?? 0)) : null);
  model.changed.connect(update, choice);
  // The first part is in the toolbar only after its factory has returned.
  void panel.revealed.then(update);
}

function addCommands(
  app: JupyterFrontEnd,
  tracker: INotebookTracker,
  current: () => PickerModel | null,
  trans: TranslationBundle
): void {
  const describedBy = { args: { type: 'object', properties: {} } } as const;
  app.commands.addCommand(CommandIDs.overrideCell, {
    label: trans.__('Choose Ranks for the Selected Cells Only'),
    caption: trans.__('Set a target for the selected cells, or clear it'),
    describedBy,
    isEnabled: () => current() !== null,
    isToggled: () => current()?.isOverride ?? false,
    execute: () => {
      const model = current();
      model?.setOverride(!model.isOverride);
    }
  });
  app.commands.addCommand(CommandIDs.focusPicker, {
    label: trans.__('Choose Where Cells Run'),
    caption: trans.__('Focus the rank picker'),
    describedBy,
    isEnabled: () => current() !== null,
    execute: () => {
      const { toolbar } = tracker.currentWidget ?? {};
      if (toolbar) {
        focusPicker(toolbar.node);
      }
    }
  });
}
