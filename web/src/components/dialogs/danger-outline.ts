/** Props of a destructive button in a list, which opens a confirmation: red text, neutral background. */
export const dangerOutline = { variant: 'default', c: 'var(--mantine-color-error)' } as const
