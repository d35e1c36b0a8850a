
startTheme();
startNavigation();
