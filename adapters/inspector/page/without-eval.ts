import { config } from 'zod'

// The page may not make code from text; zod tries to when the first schema is made, so that this script is the page's first.
config({ jitless: true })
