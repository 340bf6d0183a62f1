import { signal } from '@preact/signals'

/** Contexts that this page opened and in which there is no task (yet). */
export const spokenContexts = signal<readonly string[]>([])
