import { config } from 'zod'

// The page's policy forbids eval, which zod tries when the first schema is made. So this script must run first.
config({ jitless: true })
