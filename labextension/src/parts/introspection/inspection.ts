/**
 * Shift+Tab and Contextual Help of cells that run on ranks. JupyterLab asks
 * the notebook's kernel connection, so this plugin answers in its place for
 * such cells. For notebooks without a kernel, another plugin serves
 * Contextual Help.
 */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import { ITooltipManager } from '@jupyterlab/tooltip';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { hasPlace, IRankPlace, placeOf } from '../../model/targets/cellplace';
import { CommandIDs, IDistGroups, IDistService } from '../../tokens';
import type { RankConsole } from './helpsources';
import { inspect, inspectingKernel } from './rankanswer';

export const inspectionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:inspection',
  description: 'Answers Shift+Tab and Contextual Help from the first rank that a cell runs on.',
  autoStart: true,
  requires: [IDistService, IDistGroups, INotebookTracker],
  optional: [ITooltipManager, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    tracker: INotebookTracker,
    tooltips: ITooltipManager | null,
    translator: ITranslator | null
  ): void => {
    const place = ({ content }: NotebookPanel): IRankPlace | null =>
      placeOf(groups, content.model, content.activeCell?.model);
    const open = (panel: NotebookPanel): void => {
      const answer = (kernel: Kernel.IKernelConnection | null | undefined): void => {
        if (kernel) {
          answerForRanks(kernel, service, () => (panel.isDisposed ? null : place(panel)));
        }
      };
      panel.sessionContext.kernelChanged.connect((_, { newValue }) => answer(newValue), panel);
      answer(panel.sessionContext.session?.kernel);
    };
    tracker.forEach(open);
    tracker.widgetAdded.connect((_, panel) => open(panel), app);
    app.commands.commandExecuted.connect((_, { id }) => {
      const panel = tracker.currentWidget;
      const editor = panel?.content.activeCell?.editor;
      // With a kernel, JupyterLab has asked it.
      if (
        id === 'tooltip:launch-notebook' &&
        panel &&
        editor &&
        !panel.sessionContext.session?.kernel &&
        place(panel)
      ) {
        const { content: anchor } = panel;
        tooltips?.invoke({
          anchor,
          editor,
          kernel: inspectingKernel(service, () => place(panel)),
          rendermime: anchor.rendermime
        });
      }
    }, app);
    addConsoleCommand(app, service, tooltips, (translator ?? nullTranslator).load('jupyter_dist'));
  }
};

/** The command of a console's key, which the schema has. */
function addConsoleCommand(
  { commands, shell }: JupyterFrontEnd,
  service: IDistService,
  tooltips: ITooltipManager | null,
  trans: TranslationBundle
): void {
  const current = (): RankConsole | null =>
    shell.currentWidget && hasPlace(shell.currentWidget) ? (shell.currentWidget as RankConsole) : null;
  commands.addCommand(CommandIDs.inspectConsole, {
    label: trans.__('Show Documentation in the Console on Ranks'),
    describedBy: { args: { type: 'object', properties: {} } },
    isEnabled: () => current() !== null,
    execute: () => {
      const panel = current();
      const editor = panel?.content.promptCell?.editor;
      if (panel && editor) {
        const { content: anchor } = panel;
        const kernel = inspectingKernel(service, () => panel.rankPlace);
        tooltips?.invoke({ anchor, editor, kernel, rendermime: anchor.rendermime });
      }
    }
  });
}

/** Have a connection answer from a rank while the notebook's active cell runs on one. */
function answerForRanks(kernel: Kernel.IKernelConnection, service: IDistService, place: () => IRankPlace | null): void {
  const ask = kernel.requestInspect.bind(kernel);
  kernel.requestInspect = content => {
    const found = place();
    return found ? inspect(service, found, content) : ask(content);
  };
}
