// The frame of the pages for people who are not signed in.
import { Box, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import type { ReactNode } from 'react'
import { Logo } from '../icons.tsx'
import classes from './auth-layout.module.css'

interface AuthLayoutProps {
  title: string
  lead?: ReactNode
  children?: ReactNode
}

export function AuthLayout({ title, lead, children }: AuthLayoutProps) {
  useDocumentTitle(`${title} · Adit`)
  return (
    <Box component="main" mih="100dvh" px="md" py="clamp(2rem, 10vh, 6rem)" className={classes.ground}>
      <Stack w="100%" maw={420} mx="auto" gap="lg">
        <Group gap="xs" justify="center" className={classes.logo}>
          <Logo size={36} />
          adit
        </Group>
        <Paper p={{ base: 'lg', xs: 'xl' }} shadow="md">
          <Stack>
            <Stack gap={4}>
              <Title order={1} size="h3">
                {title}
              </Title>
              {lead && (
                <Text c="dimmed" size="sm">
                  {lead}
                </Text>
              )}
            </Stack>
            {children}
          </Stack>
        </Paper>
      </Stack>
    </Box>
  )
}
