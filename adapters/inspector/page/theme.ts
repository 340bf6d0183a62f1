import { effect, signal } from '@preact/signals'

const THEMES = ['system', 'light', 'dark'] as const

/** Light, dark, or as the system has it. */
export type Theme = (typeof THEMES)[number]

const KEY = 'taskchart-theme'

/** How the page looks. */
export const theme = signal<Theme>(THEMES.find(theme => theme === localStorage.getItem(KEY)) ?? 'system')

/** Has the page look so, now and when it is opened again. */
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
