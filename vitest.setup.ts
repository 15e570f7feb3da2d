// What JupyterLab's packages touch at import and jsdom does not have.
const scope = globalThis as unknown as Record<string, unknown>;

scope.DragEvent ??= class DragEvent extends MouseEvent {};
scope.ResizeObserver ??= class {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
};
scope.IntersectionObserver ??= class {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
};
scope.matchMedia ??= () => ({
  matches: false,
  addEventListener() {},
  removeEventListener() {},
  addListener() {},
  removeListener() {}
});
