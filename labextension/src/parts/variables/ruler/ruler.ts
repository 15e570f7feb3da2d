/** The strip at the right edge of a notebook: a mark for each cell in which ranks differ; nothing while they agree. */
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import type { DifferenceKind } from './differences';
import type { IMark, RulerModel } from './rulermodel';

/** The worst first: a cell has one color. */
const KINDS: readonly DifferenceKind[] = ['error', 'check', 'late', 'output', 'variable'];
const MAX_WORDS = 3;

export class Ruler implements IDisposable {
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _model: RulerModel,
    private readonly _trans: TranslationBundle,
    private readonly _onDispose: () => void
  ) {
    this.node.className = 'jpd-Ruler';
    this.node.setAttribute('role', 'toolbar');
    this.node.setAttribute('aria-orientation', 'vertical');
    this.node.hidden = true;
    this.node.addEventListener('click', event => this._onClick(event));
    this.node.addEventListener('keydown', event => this._onKey(event));
    // Beside the notebook, not in it: there, keys are the notebook's commands.
    _panel.node.append(this.node);
    _model.changed.connect(this._draw, this);
    this._sizes = new ResizeObserver(() => this._place());
    this._sizes.observe(_panel.content.node);
    this._sizes.observe(_panel.content.viewportNode);
  }

  readonly node = document.createElement('div');

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._onDispose();
    this._model.dispose();
    this._sizes.disconnect();
    this.node.remove();
  }

  /** Go to the cell in which ranks began to differ. */
  async showFirst(): Promise<void> {
    if (this._model.first) {
      await this._show(this._model.first);
    }
  }

  private async _show({ cell }: IMark): Promise<void> {
    const { content } = this._panel;
    const at = content.widgets.findIndex(({ model }) => model === cell);
    if (at >= 0) {
      content.activeCellIndex = at;
      content.mode = 'command';
      await content.scrollToItem(at, 'smart');
      content.activate();
    }
  }

  private _draw(): void {
    const { marks, first } = this._model;
    const { _trans: trans } = this;
    const shape = JSON.stringify(marks.map(mark => [mark.cell.id, mark === first, this._textOf(mark)]));
    if (shape === this._shape) {
      this._place();
      return;
    }
    this._shape = shape;
    this.node.hidden = marks.length === 0;
    this.node.setAttribute('aria-label', trans._n('Ranks differ in %1 cell', 'Ranks differ in %1 cells', marks.length));
    this.node.title = first ? trans.__('Ranks began to differ in %1', this._textOf(first)) : '';
    const hadFocus = this.node.contains(document.activeElement);
    this._buttons = marks.map(mark => this._button(mark, mark === first));
    this.node.replaceChildren(...this._buttons);
    if (hadFocus) {
      this._focus(0);
    }
    this._place();
  }

  private _button(mark: IMark, isFirst: boolean): HTMLButtonElement {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'jpd-Ruler-mark';
    button.tabIndex = isFirst ? 0 : -1;
    button.dataset.kind = KINDS.find(kind => mark.differences.some(one => one.kind === kind));
    button.title = this._textOf(mark);
    button.setAttribute('aria-label', button.title);
    button.addEventListener('click', event => {
      event.stopPropagation();
      void this._show(mark);
    });
    return button;
  }

  /** "[5], 8:43 AM: rank 2 error: ValueError: odd" */
  private _textOf({ cell, at, differences }: IMark): string {
    const time = at === null ? '' : new Date(at * 1000).toLocaleTimeString(undefined, { timeStyle: 'short' });
    const place = [`[${cell.executionCount ?? ' '}]`, time].filter(Boolean).join(', ');
    return `${place}: ${differences
      .slice(0, MAX_WORDS)
      .map(({ words }) => words)
      .join('; ')}`;
  }

  private _onClick(event: MouseEvent): void {
    if (event.target === this.node) {
      void this.showFirst();
    }
  }

  private _onKey(event: KeyboardEvent): void {
    const at = this._buttons.indexOf(event.target as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this._buttons.length - 1 }[event.key];
    if (at >= 0 && to !== undefined) {
      event.preventDefault();
      this._focus(Math.min(Math.max(to, 0), this._buttons.length - 1));
    }
  }

  private _focus(at: number): void {
    this._buttons.forEach((button, i) => (button.tabIndex = i === at ? 0 : -1));
    this._buttons[at]?.focus();
  }

  /** Put the marks where their cells are in the whole height of the notebook; by their numbers while not all cells are drawn. */
  private _place(): void {
    if (this.node.hidden) {
      return;
    }
    const { content, node } = this._panel;
    const [area, frame] = [content.outerNode.getBoundingClientRect(), node.getBoundingClientRect()];
    const scrollbar = content.outerNode.offsetWidth - content.outerNode.clientWidth;
    Object.assign(this.node.style, {
      top: `${area.top - frame.top}px`,
      right: `${frame.right - area.right + scrollbar}px`,
      height: `${area.height}px`
    });
    const { widgets } = content;
    const isDrawn = widgets.every(({ isAttached }) => isAttached);
    const scrolled = area.top - content.outerNode.scrollTop;
    this._model.marks.forEach(({ cell }, i) => {
      const at = widgets.findIndex(({ model }) => model === cell);
      const share = isDrawn
        ? ((widgets[at]?.node.getBoundingClientRect().top ?? scrolled) - scrolled) / content.outerNode.scrollHeight
        : at / widgets.length;
      this._buttons[i].style.top = `${Math.min(Math.max(share, 0), 1) * 100}%`;
    });
  }

  private _buttons: HTMLButtonElement[] = [];
  private _isDisposed = false;
  private _shape = '[]';
  private readonly _sizes: ResizeObserver;
}
