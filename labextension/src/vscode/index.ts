/**
 * The renderer of ranks' output in notebooks of VS Code: folded, rank by rank, as in JupyterLab, from what the notebook has saved
 * or the kernel *Ranks* sends. Its API: https://code.visualstudio.com/api/extension-guides/notebook#notebook-renderer
 */
import { MimeModel, RenderMimeRegistry, standardRendererFactories } from '@jupyterlab/rendermime';
import type { JSONObject } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';
import { RANKS_MIME } from '../services/protocol';
import { RanksRenderer } from '../widgets/rankoutput/renderer';
import { savedOptions } from './saved';

/** The styles of the output, which the build puts here (labextension/vscode/build.mjs). */
declare const STYLES: string;

/** As far as it is used of https://github.com/microsoft/vscode/blob/main/src/vscode-notebook-renderer/index.d.ts. */
interface IOutputItem {
  readonly id: string;
  readonly mime: string;
  readonly metadata: unknown;
  json(): unknown;
}

interface IRenderer {
  renderOutputItem(item: IOutputItem, element: HTMLElement): Promise<void>;
  disposeOutputItem(id?: string): void;
}

export function activate(): IRenderer {
  const style = document.createElement('style');
  style.textContent = STYLES;
  document.head.append(style);
  const rendermime = new RenderMimeRegistry({ initialFactories: standardRendererFactories });
  const shown = new Map<string, RanksRenderer>();
  const dispose = (id: string): void => {
    shown.get(id)?.dispose();
    shown.delete(id);
  };
  return {
    async renderOutputItem(item: IOutputItem, element: HTMLElement): Promise<void> {
      // The same one while an output changes: it keeps the tab that was chosen.
      if (!element.contains(shown.get(item.id)?.node ?? null)) {
        dispose(item.id);
        shown.set(item.id, new RanksRenderer(savedOptions(rendermime)));
        element.replaceChildren();
        Widget.attach(shown.get(item.id)!, element);
      }
      // Not trusted: HTML is sanitized. Figures are separate outputs, which VS Code shows below.
      const data = { [RANKS_MIME]: item.json() as JSONObject };
      await shown.get(item.id)!.renderModel(new MimeModel({ data, trusted: false }));
    },
    disposeOutputItem(id?: string): void {
      (id === undefined ? [...shown.keys()] : [id]).forEach(dispose);
    }
  };
}
