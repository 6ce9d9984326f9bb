#!/bin/sh
echo export SITE=campus
