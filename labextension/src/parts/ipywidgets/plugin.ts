import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { Widget } from '@lumino/widgets';
import { setLiveKind } from '../../model/outputs/liveoutputs';
import { IDistService } from '../../tokens';
import { WIDGET_MIME } from './sharedviews';
import { WidgetSpaces } from './spaces';
import { RankWidgetView } from './widgetview';

/** JupyterLab's extension for widgets. */
const WIDGETS_ID = '@jupyter-widgets/jupyterlab-manager:plugin';

/** Widgets (ipywidgets) of ranks: live while their rank has them, one for equal ones of all ranks. */
const widgetsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:widgets',
  description: 'Shows the widgets of ranks.',
  autoStart: true,
  requires: [IDistService],
  optional: [ITranslator],
  activate: (app: JupyterFrontEnd, service: IDistService, translator: ITranslator | null): void => {
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const isInstalled = (): boolean => app.hasPlugin(WIDGETS_ID);
    setLiveKind({
      mimeType: WIDGET_MIME,
      outputsOf: (rendermime, context) =>
        new WidgetSpaces(
          service,
          rendermime,
          context,
          isInstalled,
          (options, load) => new RankWidgetView(options, { trans, load, isNew })
        )
    });
  }
};

export default widgetsPlugin;

const said = new Map<string, Widget>();

/** Whether no other view shows this sentence: if widgets are shown as text, the page explains it once. */
function isNew(sentence: string, view: Widget): boolean {
  const known = said.get(sentence);
  if (known && known !== view && !known.isDisposed) {
    return false;
  }
  said.set(sentence, view);
  return true;
}
