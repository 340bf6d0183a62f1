import { effect, signal } from '@preact/signals'

const THEMES = ['system', 'light', 'dark'] as const

export type Theme = (typeof THEMES)[number]

const KEY = 'taskchart-theme'

/** The theme of the page. */
export const theme = signal<Theme>(THEMES.find(theme => theme === localStorage.getItem(KEY)) ?? 'system')

/** Applies the theme, and stores it for the next visit. */
export function keepTheme(): void {
  effect(() => {
    localStorage.setItem(KEY, theme.value)
    document.documentElement.dataset.theme = theme.value
  })
}

/** The next of system, light and dark. */
export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.peek()) + 1) % THEMES.length] ?? 'system'
}
