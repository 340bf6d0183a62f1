import { isHelpOpen } from './help.tsx'
import { PARTS, part } from './selection.ts'

/** Hears the keys that count everywhere but where text is put in. */
export function hearKeys(): void {
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
    if (event.key === 'Escape') return focus('.tasks [role=listbox]')
    if (isTyping(event.target)) return
    const act = actOf(event.key)
    if (!act) return
    event.preventDefault()
    act()
  })
}

function actOf(key: string): (() => void) | undefined {
  if (key === '/') return () => focus('#search')
  if (key === '?') return () => (isHelpOpen.value = true)
  if (key === 'm') return () => talk()
  const chosen = /^\d$/.test(key) ? PARTS[Number(key) - 1] : undefined
  return chosen && (() => (part.value = chosen))
}

function talk(): void {
  part.value = 'talk'
  requestAnimationFrame(() => focus('#composer'))
}

function focus(selector: string): void {
  document.querySelector<HTMLElement>(selector)?.focus()
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
}
