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
import { IRankPlace, placeOf } from '../../model/targets/cellplace';
import { IDistGroups, IDistService } from '../../tokens';
import { inspect, inspectingKernel } from '../../model/targets/rankanswer';

export const inspectionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:inspection',
  description: 'Answers Shift+Tab and Contextual Help from the first rank that a cell runs on.',
  autoStart: true,
  requires: [IDistService, IDistGroups, INotebookTracker],
  optional: [ITooltipManager],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    tracker: INotebookTracker,
    tooltips: ITooltipManager | null
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
  }
};

/** Have a connection answer from a rank while the notebook's active cell runs on one. */
function answerForRanks(kernel: Kernel.IKernelConnection, service: IDistService, place: () => IRankPlace | null): void {
  const ask = kernel.requestInspect.bind(kernel);
  kernel.requestInspect = content => {
    const found = place();
    return found ? inspect(service, found, content) : ask(content);
  };
}
