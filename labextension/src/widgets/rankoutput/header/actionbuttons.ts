/** The buttons that other extensions add above the output of ranks. */
import { guarded } from '../../../model/contributions';
import type { IDistOutputActions, IOutputAction, IRanksOutput } from '../../../tokens';
import type { IShown } from '../items/shown';

export class ActionButtons {
  constructor(private _actions: IDistOutputActions) {
    this.node = document.createElement('div');
    this.node.className = 'jpd-Ranks-actions';
    this.node.hidden = true;
  }

  readonly node: HTMLElement;

  update(shown: IShown, trusted: boolean): void {
    this._output = outputOf(shown, trusted);
    const visible = this._actions.items.filter(action => isVisible(action, this._output!));
    // The same buttons stay: one may have the focus.
    if (visible.length !== this._shown.length || visible.some((action, i) => action !== this._shown[i])) {
      this._shown = visible;
      this.node.hidden = visible.length === 0;
      this.node.replaceChildren(...visible.map(action => this._button(action)));
    }
  }

  private _button(action: IOutputAction): HTMLElement {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'jpd-Ranks-action';
    button.textContent = action.label;
    button.onclick = () => action.execute(this._output!);
    return button;
  }

  private _output: IRanksOutput | null = null;
  private _shown: readonly IOutputAction[] = [];
}

function outputOf({ executionId, group, ranks, state, items }: IShown, trusted: boolean): IRanksOutput {
  return { execution: executionId, group, ranks, state, items, trusted };
}

function isVisible(action: IOutputAction, output: IRanksOutput): boolean {
  return guarded(`the output action '${action.id}'`, () => action.isVisible?.(output) ?? true, false);
}
