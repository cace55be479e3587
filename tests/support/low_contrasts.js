// The visible texts of a page whose contrast to what lies behind them is below 4.5 (WCAG 2).
() => {
  const parsed = (text) => {
    const found = (text.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    const scale = text.startsWith("color(srgb") ? 255 : 1;
    return [...found.slice(0, 3).map((part) => part * scale), found[3] ?? 1];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const parent = (element) => element.parentElement ?? element.getRootNode().host ?? null;
  const behind = (element) => {
    const layers = [];
    for (let each = element; each; each = parent(each)) {
      layers.push(parsed(getComputedStyle(each).backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const light = (colour) => {
    const [red, green, blue] = colour.slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const low = [];
  let texts = 0;
  const check = (element, text, colour) => {
    texts++;
    const ground = behind(element);
    const lights = [light(over(parsed(colour), ground)), light(ground)].sort((a, b) => b - a);
    const contrast = (lights[0] + 0.05) / (lights[1] + 0.05);
    if (contrast < 4.5)
      low.push(`${contrast.toFixed(2)} of ${colour} on ${ground.slice(0, 3).map(Math.round)}: ${text.trim().slice(0, 40)}`);
  };
  const walk = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) walk(element.shadowRoot);
      if (["STYLE", "SCRIPT", "title"].includes(element.tagName)) continue;
      const box = element.getBoundingClientRect();
      const seen = { visibilityProperty: true, opacityProperty: true };
      if (!box.width || !box.height || !element.checkVisibility(seen)) continue;
      const style = getComputedStyle(element);
      const ink = element instanceof SVGElement ? style.fill : style.color;
      for (const node of element.childNodes)
        if (node.nodeType === Node.TEXT_NODE && node.data.trim()) check(element, node.data, ink);
      if (!["INPUT", "TEXTAREA"].includes(element.tagName) || ["range", "radio", "checkbox"].includes(element.type)) continue;
      if (element.value) check(element, element.value, ink);
      else if (element.placeholder)
        check(element, element.placeholder, getComputedStyle(element, "::placeholder").color);
    }
  };
  walk(document);
  if (texts < 20) low.push(`only ${texts} texts were found`);
  return low;
}
