/* The why is in report.h. */
#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int report_fail(struct report *report, const char *format, ...)
{
	int error = errno;
	va_list arguments;

	if (report->text[0] != '\0')
		return -1;
	va_start(arguments, format);
	errno = error;
	if (vsnprintf(report->text, sizeof(report->text), format, arguments) < 0)
		report->text[0] = '?';
	va_end(arguments);
	errno = error;
	return -1;
}
