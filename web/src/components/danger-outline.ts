/** For buttons that stand in rows, and ask before they act: red in words, not as a surface. */
export const dangerOutline = { variant: 'default', c: 'var(--mantine-color-error)' } as const
