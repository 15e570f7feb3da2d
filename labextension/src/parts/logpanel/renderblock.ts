/** Renders one block of a log with JupyterLab's own renderers. */
import { OutputAreaModel, SimplifiedOutputArea } from '@jupyterlab/outputarea';
import { IRenderMimeRegistry, renderText } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import type { IExecutionBlock, IGapBlock, INoteBlock, IOutputBlock, ITextBlock, LogBlock } from './model/logblocks';
import { formatSeconds } from '../../model/format/quantities';
import { stateWord } from '../../widgets/states/statewords';

/** What is needed to render a block. */
export interface IBlockContext {
  readonly rendermime: IRenderMimeRegistry;
  readonly trans: TranslationBundle;
  /** Whether the output of an execution may run scripts; other users write to this log, too. */
  readonly isTrusted: (execution: string | null) => boolean;
  readonly fillGap: (gap: IGapBlock) => void;
}

/** A block on the page. */
export class BlockNode {
  constructor(block: LogBlock, context: IBlockContext) {
    this.node = document.createElement('div');
    this.node.className = 'jpd-LogBlock';
    this.node.dataset.kind = block.kind;
    this._context = context;
  }

  readonly node: HTMLElement;

  /** The version on the page; -1 before the first. */
  version = -1;

  /** Update the node, which must be on the page. */
  render(block: LogBlock): void {
    this.version = block.version;
    switch (block.kind) {
      case 'text':
        this._renderText(block);
        break;
      case 'execution':
        this._renderExecution(block);
        break;
      case 'output':
        this._renderOutput(block);
        break;
      case 'note':
        this._renderNote(block);
        break;
      case 'gap':
        this._renderGap(block);
        break;
    }
  }

  dispose(): void {
    this._area?.dispose();
    this.node.remove();
  }

  private _renderText(block: ITextBlock): void {
    const { rendermime, trans } = this._context;
    const host = document.createElement('div');
    host.className = 'jp-RenderedText';
    host.dataset.mimeType = `application/vnd.jupyter.${block.name}`;
    const source = block.text.endsWith('\n') ? block.text.slice(0, -1) : block.text;
    void renderText({ host, source, sanitizer: rendermime.sanitizer });
    if (block.name === 'stderr') {
      host.setAttribute('aria-label', trans.__('Error stream'));
    }
    this.node.replaceChildren(host);
  }

  private _renderExecution(block: IExecutionBlock): void {
    const { trans } = this._context;
    const head = element('div', 'jpd-LogExecution');
    head.setAttribute('role', 'heading');
    head.setAttribute('aria-level', '3');
    head.dataset.status = block.status;
    head.append(
      element('span', 'jpd-LogExecution-count', `[${block.count ?? '*'}]`),
      element('span', 'jpd-LogExecution-notebook', block.notebook?.split('/').pop() ?? ''),
      element('span', 'jpd-LogExecution-code', firstLine(block.code)),
      element('span', 'jpd-LogExecution-continued', block.continued ? trans.__('continued') : ''),
      element('span', 'jpd-LogExecution-status', stateWord(trans, block.status)),
      element('span', 'jpd-LogExecution-seconds', block.seconds === null ? '' : formatSeconds(block.seconds)),
      element('time', 'jpd-LogExecution-time', new Date(block.at * 1000).toLocaleTimeString())
    );
    head.title = block.code ?? '';
    this.node.replaceChildren(head);
  }

  private _renderOutput(block: IOutputBlock): void {
    this._area?.dispose();
    this._area = new SimplifiedOutputArea({
      model: new OutputAreaModel({ values: [block.output], trusted: this._context.isTrusted(block.executionId) }),
      rendermime: this._context.rendermime
    });
    Widget.attach(this._area, this.node);
  }

  private _renderNote(block: INoteBlock): void {
    this.node.replaceChildren(element('p', 'jpd-LogNote', block.text));
  }

  private _renderGap(block: IGapBlock): void {
    const { fillGap, trans } = this._context;
    const line = element('p', 'jpd-LogNote');
    const button = element('button', 'jpd-LogLink', trans.__('Load them'));
    button.addEventListener('click', () => fillGap(block));
    const words = trans._n(
      '%1 output was skipped: too much to show live.',
      '%1 outputs were skipped: too much to show live.',
      block.records,
      block.records
    );
    line.append(`${words} `, button);
    this.node.replaceChildren(line);
  }

  private readonly _context: IBlockContext;
  private _area: SimplifiedOutputArea | null = null;
}

function element(tag: string, className: string, text = ''): HTMLElement {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = text;
  return node;
}

function firstLine(code: string | null): string {
  const lines = (code ?? '').split('\n').filter(line => line.trim() !== '');
  return lines.length > 1 ? `${lines[0]} ...` : (lines[0] ?? '');
}
