/** What screen readers announce where the visible text has times or counts that change by themselves. */

export class Spoken {
  constructor() {
    this.node.className = 'jpd-Spoken';
    this.node.setAttribute('role', 'status');
  }

  readonly node = document.createElement('div');

  /** Announce a text, once. */
  say(text: string): void {
    if (this.node.textContent !== text) {
      this.node.textContent = text;
    }
  }
}
