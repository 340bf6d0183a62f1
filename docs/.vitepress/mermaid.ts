import type { MarkdownRenderer } from 'vitepress'

/** Makes a drawing of each block of Mermaid, by the component `Mermaid` of the theme. */
export function drawMermaid(markdown: MarkdownRenderer): void {
  const { fence } = markdown.renderer.rules
  markdown.renderer.rules.fence = (tokens, index, ...rest) => {
    const token = tokens[index]
    if (token?.info.trim() === 'mermaid') return `<Mermaid code="${encodeURIComponent(token.content)}" />`
    return fence?.(tokens, index, ...rest) ?? ''
  }
}
