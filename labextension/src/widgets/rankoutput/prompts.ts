/** The fields in a cell in which the user answers what ranks ask for: `input()`, passwords, debuggers. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { expandRanks, includesRank } from '../../model/format/ranks';
import type { IInputPrompt, IInputRequest } from '../../services/protocol';
import type { TabId } from './header/tabbar';
import { rankSetLabel } from './items/itemrow';

export interface IPromptsOptions {
  trans: TranslationBundle;
  /** Send an answer; rejects with the reason if no rank took it. */
  answer(body: IInputRequest): Promise<unknown>;
}

/** One field for all ranks that ask the same. What was typed stays while ranks come and go. */
export class Prompts {
  constructor(options: IPromptsOptions) {
    this._options = options;
    this.node.className = 'jpd-Prompts';
    this.node.setAttribute('role', 'group');
    this.node.setAttribute('aria-label', options.trans.__('Questions of ranks'));
    this.node.hidden = true;
  }

  readonly node = document.createElement('div');

  /** Show what is asked; in the tab of a rank, only what that rank asks. */
  update(asking: readonly IInputPrompt[], tab: TabId): void {
    const shown = new Map<string, IInputPrompt>();
    for (const asked of asking) {
      if (typeof tab !== 'number' || includesRank(asked.ranks, tab)) {
        shown.set(
          JSON.stringify([asked.prompt, asked.password]),
          typeof tab !== 'number' ? asked : { ...asked, ranks: `${tab}` }
        );
      }
    }
    for (const [key, field] of this._fields) {
      if (!shown.has(key)) {
        field.node.remove();
        this._fields.delete(key);
      }
    }
    for (const [key, asked] of shown) {
      const field = this._fields.get(key);
      if (field) {
        field.update(asked);
      } else {
        this._add(key, asked);
      }
    }
    this.node.hidden = shown.size === 0;
  }

  private _add(key: string, asked: IInputPrompt): void {
    const field = new PromptField(asked, this._options);
    this._fields.set(key, field);
    this.node.append(field.node);
    this.node.hidden = false;
    if (!isTyping()) {
      field.focus();
    }
  }

  private _fields = new Map<string, PromptField>();
  private _options: IPromptsOptions;
}

class PromptField {
  constructor(asked: IInputPrompt, options: IPromptsOptions) {
    const { trans } = options;
    this._options = options;
    this.node.className = 'jpd-Prompt';
    const id = `jpd-prompt-${nextId++}`;
    this._who.className = 'jpd-Prompt-who';
    this._who.id = `${id}-who`;
    const prompt = document.createElement('label');
    prompt.className = 'jpd-Prompt-text';
    prompt.id = `${id}-text`;
    prompt.htmlFor = id;
    prompt.textContent = asked.prompt;
    this._input.id = id;
    this._input.className = 'jpd-Prompt-input';
    this._input.type = asked.password ? 'password' : 'text';
    this._input.autocomplete = 'off';
    this._input.spellcheck = false;
    this._input.setAttribute('aria-labelledby', `${this._who.id} ${prompt.id}`);
    this._chosen.className = 'jpd-Prompt-ranks';
    this._chosen.setAttribute('aria-label', trans.__('Ranks to answer'));
    this._problem.className = 'jpd-Prompt-problem';
    this._problem.setAttribute('role', 'alert');
    const send = document.createElement('button');
    send.type = 'button';
    send.className = 'jpd-Prompt-send';
    send.textContent = trans.__('Send');
    send.title = trans.__('Send the answer (Enter)');
    this.node.append(this._who, prompt, this._input, this._chosen, send, this._problem);
    send.addEventListener('click', () => void this._send());
    // Not the form's own submission, which JupyterLab prevents.
    this._input.addEventListener('keydown', event => {
      if (event.key === 'Enter' && !event.isComposing) {
        event.preventDefault();
        event.stopPropagation();
        void this._send();
      } else if ((event.key === 'ArrowUp' || event.key === 'ArrowDown') && !asked.password) {
        event.preventDefault();
        event.stopPropagation();
        this._recall(event.key === 'ArrowUp' ? -1 : 1);
      }
    });
    this.update(asked);
  }

  readonly node = document.createElement('div');

  focus(): void {
    this._input.focus({ preventScroll: true });
  }

  update(asked: IInputPrompt): void {
    const { trans } = this._options;
    const isSame = this._asked?.ranks === asked.ranks;
    if (this._asked && this._asked.seq !== asked.seq) {
      this._problem.textContent = '';
    }
    this._asked = asked;
    if (isSame) {
      return;
    }
    const ranks = expandRanks(asked.ranks);
    const label = rankSetLabel(trans, asked.ranks);
    this._who.textContent = ranks.length > 1 ? trans.__('%1 ask:', label) : trans.__('%1 asks:', label);
    const before = this._chosen.value;
    const all = new Option(trans.__('answer all'), '');
    const each = ranks.map(rank => new Option(trans.__('answer rank %1', rank), String(rank)));
    this._chosen.replaceChildren(all, ...each);
    this._chosen.value = ranks.map(String).includes(before) ? before : '';
    this._chosen.hidden = ranks.length < 2;
  }

  /** Fill in an earlier answer: commands of a debugger are entered again and again. */
  private _recall(step: -1 | 1): void {
    this._recalled = Math.min(Math.max(this._recalled + step, 0), sentBefore.length);
    this._input.value = sentBefore[this._recalled] ?? '';
  }

  private async _send(): Promise<void> {
    if (this._input.readOnly) {
      return; // an answer is on its way: this one would be for the next question
    }
    const { ranks, seq } = this._asked!;
    const text = this._input.value;
    this._input.readOnly = true;
    this._problem.textContent = '';
    try {
      await this._options.answer({ text, seq, ranks: this._chosen.value || ranks });
      this._input.value = '';
      if (!this._asked!.password && text !== '' && text !== sentBefore[sentBefore.length - 1]) {
        sentBefore.push(text);
        sentBefore.splice(0, sentBefore.length - MAX_RECALLED);
      }
      this._recalled = sentBefore.length;
    } catch (reason) {
      this._problem.textContent = reason instanceof Error ? reason.message : String(reason);
    }
    this._input.readOnly = false;
  }

  private _asked: IInputPrompt | null = null;
  private readonly _chosen = document.createElement('select');
  private readonly _input = document.createElement('input');
  private _options: IPromptsOptions;
  private _recalled = sentBefore.length;
  private readonly _problem = document.createElement('span');
  private readonly _who = document.createElement('span');
}

/** Whether the user is in the middle of a text, which must not go to a rank. */
function isTyping(): boolean {
  const active = document.activeElement;
  if (active instanceof HTMLInputElement || active instanceof HTMLTextAreaElement) {
    return true;
  }
  return active?.classList.contains('cm-content') === true && active.textContent !== '';
}

/** Answers of this page, the last one at the end; no passwords. */
const sentBefore: string[] = [];
const MAX_RECALLED = 100;
let nextId = 0;
